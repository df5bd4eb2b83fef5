/**
 * What a person does in JupyterLab and in Notebook 7, as far as the tests do it.
 */

/** How long anything may take, in ms: test machines are slow, and kernels start in the meantime. */
export const PATIENCE = 30_000;

/** The panel, and a notebook beside it. */
export class Page {
  constructor(page, server, app) {
    this.page = page;
    this.server = server;
    this.app = app;
    this.errors = [];
    page.setDefaultTimeout(PATIENCE);
    page.on('pageerror', error => this.errors.push(`${error.stack ?? error}`));
  }

  /** Open a notebook, and wait for its kernel. */
  async open(name) {
    const path = this.app === 'lab' ? `/lab/tree/${name}?reset` : `/notebooks/${name}`;
    await this.page.goto(this.server.url + path);
    await this.ready();
  }

  async reload() {
    await this.page.reload();
    await this.ready();
  }

  async ready() {
    await this.page.locator('.jp-Notebook .jp-Cell').first().waitFor();
    await this.page.waitForFunction(() => {
      const app = window.jupyterapp ?? window.jupyterlab;
      const panel = app?.shell.currentWidget;
      return ['idle', 'busy'].includes(panel?.sessionContext?.session?.kernel?.status);
    });
  }

  /** Something done with the application's commands. */
  command(id, args = {}) {
    return this.page.evaluate(
      ([name, given]) => (window.jupyterapp ?? window.jupyterlab).commands.execute(name, given),
      [id, args]
    );
  }

  async showPanel(tab) {
    await this.command('perspex:open-panel', tab ? { tab } : {});
    await this.page.locator('#perspex-panel').waitFor();
  }

  /** Run the cell with this number, counted from 1, and wait for its end. */
  async run(number) {
    const cell = this.page.locator('.jp-Notebook .jp-Cell').nth(number - 1);
    await cell.locator('.cm-content').click();
    await this.page.keyboard.press('Control+Enter');
    await this.page.waitForFunction(i => {
      const prompt = document.querySelectorAll('.jp-Notebook .jp-Cell')[i];
      return /\[\d+\]/.test(prompt?.querySelector('.jp-InputPrompt')?.textContent ?? '');
    }, number - 1);
  }

  /** Wait until the kernel has nothing to do. */
  idle() {
    return this.page.waitForFunction(() => {
      const app = window.jupyterapp ?? window.jupyterlab;
      return app.shell.currentWidget.sessionContext.session.kernel.status === 'idle';
    });
  }

  /** Wait until something holds, with so many times the usual patience. */
  async until(holds, patience = 1) {
    for (const end = Date.now() + patience * PATIENCE; !(await holds());) {
      if (Date.now() > end) {
        const shown = await this.panel.innerText({ timeout: 1000 }).catch(() => 'no panel');
        throw new Error(`It took too long: ${holds}\nThe panel shows:\n${shown}`);
      }
      await this.page.waitForTimeout(50);
    }
  }

  /** Errors of the panel's own code: the applications have some of theirs. */
  ownErrors() {
    return this.errors.filter(text => text.includes('extensions/perspex'));
  }

  activeCell() {
    return this.page.evaluate(() => {
      const app = window.jupyterapp ?? window.jupyterlab;
      return app.shell.currentWidget.content.activeCell?.model.id;
    });
  }

  focused() {
    return this.page.evaluate(() => document.activeElement?.textContent ?? '');
  }

  /** Have the kernel run cells that are in no notebook, one after the other, and wait for none. */
  send(codes) {
    return this.page.evaluate(async all => {
      const app = window.jupyterapp ?? window.jupyterlab;
      const { kernel } = app.shell.currentWidget.sessionContext.session;
      for (const [i, code] of all.entries()) {
        kernel.requestExecute({ code, store_history: true });
        if (i % 100 === 99) {
          await new Promise(resolve => setTimeout(resolve, 0));
        }
      }
    }, codes);
  }

  /** What the kernel says an expression is, as text. */
  evaluate(expression) {
    return this.page.evaluate(async code => {
      const app = window.jupyterapp ?? window.jupyterlab;
      const { kernel } = app.shell.currentWidget.sessionContext.session;
      const future = kernel.requestExecute({
        code: '',
        silent: true,
        user_expressions: { it: code }
      });
      const reply = await future.done;
      return reply.content.user_expressions.it.data['text/plain'];
    }, expression);
  }

  async restart() {
    await this.page.evaluate(async () => {
      const app = window.jupyterapp ?? window.jupyterlab;
      await app.shell.currentWidget.sessionContext.session.kernel.restart();
    });
  }

  async panelText(tab) {
    await this.showPanel(tab);
    await this.page.waitForTimeout(500);
    return this.panel.innerText();
  }

  /** Milliseconds from the key that runs a cell to another row in the Time tab. */
  async timeToRow(number) {
    const cell = this.page.locator('.jp-Notebook .jp-Cell').nth(number - 1);
    await cell.locator('.cm-content').click();
    await this.page.waitForTimeout(300);
    await this.page.evaluate(() => {
      const tab = document.querySelector('#perspex-panel-time [role="list"]');
      const before = tab.firstElementChild;
      window.took = new Promise(resolve => {
        let pressed = 0;
        document.addEventListener('keydown', () => (pressed ||= performance.now()), {
          capture: true
        });
        new MutationObserver((_, observer) => {
          // The newest row, once its cell has ended.
          const first = tab.firstElementChild;
          if (first !== before && first.querySelector('.pspx-number').textContent) {
            observer.disconnect();
            requestAnimationFrame(() => resolve(performance.now() - pressed));
          }
        }).observe(tab, { childList: true, subtree: true });
      });
    });
    await this.page.keyboard.press('Control+Enter');
    return this.page.evaluate(() => window.took);
  }

  get panel() {
    return this.page.locator('#perspex-panel');
  }

  tab(name) {
    return this.page.locator(`#perspex-panel-${name}`);
  }

  async theme(name) {
    await this.command('apputils:change-theme', { theme: name });
    await this.page.waitForTimeout(400);
  }

  /** What axe finds in the panel. */
  async violations(axe, selector = '#perspex-panel') {
    await this.page.evaluate(axe);
    return this.page.evaluate(async root => {
      const found = await window.axe.run(root, { resultTypes: ['violations'] });
      return found.violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(node => node.html.slice(0, 160)).join(' | ')}`
      );
    }, selector);
  }
}
