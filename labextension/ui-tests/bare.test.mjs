/**
 * The widgets in a page of nobody's: no Jupyter, no bundler and no net, as VS Code, Colab and others
 * host them by the protocol of anywidget. A module is imported from its text, and `render` is
 * given an element and a model that has what the protocol says and nothing else.
 */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { readFileSync } from 'node:fs';
import { SEEN, VIEWS } from './notebooks.mjs';
import { browser, PYTHON } from './server.mjs';

/** The styles that every view brings with it. */
const [, LOOK] = readFileSync(new URL('../src/views/look.ts', import.meta.url), 'utf8').match(
  /`([^`]*)`/
);

/** Prints the text of each widget's module, and what its model holds. */
const PRINTED = `${VIEWS}
made = {}
for name, widget in views.items():
    values = ("data", "previous", "detail")
    state = {name: getattr(widget, name) for name in values if widget.has_trait(name)}
    made[name] = {"text": widget._esm, "state": state}
print(json.dumps(made))
`;

let chromium;
let made;

before(async () => {
  const run = spawnSync(PYTHON, ['-c', PRINTED], { encoding: 'utf8', maxBuffer: 1e8 });
  assert.equal(run.status, 0, run.stderr);
  made = JSON.parse(run.stdout.trim().split('\n').at(-1));
  chromium = await browser();
});

after(() => chromium?.close());

/** A page that reaches nothing, with one widget, in a shadow tree where some hosts put it. */
async function open(name, { shadow = false } = {}) {
  const page = await (await chromium.newContext()).newPage();
  page.setDefaultTimeout(10_000);
  const faults = [];
  page.on('pageerror', error => faults.push(String(error)));
  page.on('console', message => message.type() === 'error' && faults.push(message.text()));
  page.on('request', request => {
    if (!request.url().startsWith('blob:')) {
      faults.push(`asked for ${request.url()}`);
    }
  });
  await page.setContent('<!doctype html><title>bare</title><main></main>');
  await page.route('**', route => route.abort());
  await page.evaluate(
    async ([text, state, isShadow]) => {
      const listeners = new Map();
      const of = event => listeners.get(event) ?? listeners.set(event, new Set()).get(event);
      const tell = (event, ...said) => [...of(event)].forEach(listener => listener(...said));
      const sent = [];
      const model = {
        get: key => state[key],
        set: (key, value) => (state[key] = value),
        save_changes: () => undefined,
        on: (event, listener) => of(event).add(listener),
        off: (event, listener) => of(event).delete(listener),
        send: message => {
          sent.push(message);
          window.queueMicrotask(() =>
            tell('msg:custom', { request: message.request, ok: true, text: '' }, [])
          );
        }
      };
      const main = document.querySelector('main');
      const el = document.createElement('div');
      (isShadow ? main.attachShadow({ mode: 'open' }) : main).append(el);
      const url = URL.createObjectURL(new window.Blob([text], { type: 'text/javascript' }));
      const { default: widget } = await import(url);
      URL.revokeObjectURL(url);
      const close = await widget.render({ model, el });
      window.host = {
        el,
        sent,
        close,
        change: (key, value) => {
          state[key] = value;
          tell(`change:${key}`);
        },
        listening: () => [...listeners.values()].reduce((sum, one) => sum + one.size, 0)
      };
    },
    [made[name].text, made[name].state, shadow]
  );
  return { page, faults };
}

for (const name of Object.keys(SEEN)) {
  describe(name, () => {
    for (const shadow of [false, true]) {
      test(`is drawn, ${shadow ? 'in a shadow tree' : 'in the page'}, and asks for nothing`, async () => {
        const { page, faults } = await open(name, { shadow });
        for (const text of SEEN[name]) {
          await page.getByText(text).filter({ visible: true }).first().waitFor();
        }
        const { width, height } = await page.locator('main div').first().boundingBox();
        assert.ok(width > 200 && height > 100, `${width} x ${height}`);
        // Its styles are its own: a box with a border is nothing that a bare page has.
        const styled = await page.evaluate(() =>
          [...window.host.el.querySelectorAll('.pspx-view, .pspx-button, table')].some(
            node => getComputedStyle(node).boxSizing === 'border-box'
          )
        );
        assert.ok(styled);
        assert.deepEqual(faults, []);
        await page.context().close();
      });
    }

    test('leaves nothing behind', async () => {
      const { page, faults } = await open(name);
      assert.ok((await page.evaluate(() => window.host.listening())) > 0);
      await page.evaluate(() => window.host.close());
      const left = await page.evaluate(() => [
        window.host.listening(),
        window.host.el.childElementCount
      ]);
      assert.deepEqual(left, [0, 0]);
      assert.deepEqual(faults, []);
      await page.context().close();
    });
  });
}

test('what changes in the model changes in the view', async () => {
  const { page } = await open('cache_view');
  const rows = page.locator('.pspx-cache-row');
  await rows.first().waitFor();
  await page.evaluate(() => window.host.change('data', { rows: [] }));
  await rows.first().waitFor({ state: 'detached' });
  await page.context().close();
});

test('what the view asks for is sent, and buttons wait for an answer of the kernel', async () => {
  const { page } = await open('key_explorer');
  const split = page.getByRole('button', { name: 'Split' });
  await split.waitFor();
  await split.click(); // It waits until the button can be pressed.
  const sent = await page.evaluate(() => window.host.sent);
  assert.equal(sent[0].do, 'greet');
  assert.equal(sent[1].do, 'split');
  await page.context().close();
});

test('where there is little room, all of a program in the cache can be read', async () => {
  const { page } = await open('cache_view');
  await page.setViewportSize({ width: 330, height: 700 });
  await page.getByRole('button', { name: 'step' }).last().click();
  await page.getByText('took', { exact: true }).waitFor();
  const [inside, outside] = await page
    .locator('.pspx-cache-scroll')
    .evaluate(box => [box.scrollWidth, box.clientWidth]);
  assert.ok(inside <= outside, `${inside} > ${outside}`);
  await page.context().close();
});

test('the heads of the forms of a program are one line, whatever other view is in the page', async () => {
  const { page } = await open('show');
  await page.setViewportSize({ width: 720, height: 500 });
  await page.evaluate(text => {
    const style = document.createElement('style');
    style.textContent = text;
    document.body.append(style);
  }, LOOK);
  const heads = await page
    .locator('.pspx-program-top')
    .evaluateAll(all => all.map(head => head.offsetHeight));
  assert.ok(heads.filter(Boolean).length > 1, heads.join(', '));
  assert.ok(Math.max(...heads) < 30, heads.join(', '));
  await page.context().close();
});
