/**
 * How fast the panel is, in JupyterLab on a real kernel.
 *
 *     make panel && node benchmarks/panel.mjs [--rounds 9] [--only row,open,hover,cost] [--calls 200000]
 *
 * row:   from the key that runs a cell to its row in the Time tab; the target is 150 ms.
 * open:  from the click on a program of 10,000 equations to its lines; the target is 1 s the first
 *        time. Each round has a program that was never opened. Later, the document is there.
 * hover: from the pointer's move over a line of that program to the frame in which what belongs to
 *        the line is marked; the target for the work is a frame, 16 ms.
 * cost:  what a cell of many small calls takes in turns with no panel, with one of JupyterLab's own
 *        that shows next to nothing (a page with a panel is more to draw), and with ours.
 *
 * Medians, with all figures behind them. What is measured in the page goes from the event to the
 * first frame that shows what the user waits for.
 */

import { Page } from '../labextension/ui-tests/pages.mjs';
import { browser, missing, serve } from '../labextension/ui-tests/server.mjs';

const given = process.argv.slice(2);
const option = (name, otherwise) => {
  const at = given.indexOf(`--${name}`);
  return at < 0 ? otherwise : given[at + 1];
};
const ROUNDS = Number(option('rounds', '9'));
const ONLY = option('only', 'row,open,hover,cost').split(',');
const CALLS = Number(option('calls', '200000'));

const EQUATIONS = 10_000;
const SETUP = `
import time
import perspex, perspex.numpy as jnp

def program(n):
    def chain(x):
        for i in range(${EQUATIONS / 2}):
            x = jnp.sin(x)
            x = x * (1.0 + n)
        return x
    chain.__name__ = f"chain_{n}"
    return perspex.jit(chain)

x = jnp.ones(4)
small = perspex.jit(lambda x: x + 1)
small(x)
programs = []
`;
const LARGE = 'programs.append(program(len(programs)))\nprograms[-1](x)';
const SMALL = 'small(x)';
const LOOP = `
begin, before = time.perf_counter(), time.process_time()
for _ in range(${CALLS}):
    y = small(x)
y.block_until_ready()
took, worked = time.perf_counter() - begin, time.process_time() - before
`;
const [ROW, BIG, COST] = [2, 3, 4];

const failed = [];

/** Print the median of some milliseconds. */
function report(name, all, target) {
  const sorted = [...all].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1];
  const digits = median < 20 ? 1 : 0;
  const wanted = target ? `, target ${target} ms` : '';
  console.log(
    `${name.padEnd(34)} ${median.toFixed(digits).padStart(7)} ms${wanted}` +
      `   (${all.map(ms => ms.toFixed(digits)).join(' ')})`
  );
  if (target && median > target) {
    failed.push(name);
  }
}

/** Milliseconds from a click on the item of a program to the frame that shows its equations. */
function timeToOpen(page, name) {
  return page.page.evaluate(async wanted => {
    const items = [...document.querySelectorAll('#perspex-panel .pspx-item')];
    const item = items.find(one => one.querySelector('.pspx-code').textContent === wanted);
    const title = document.querySelector('#perspex-panel .pspx-program-title');
    const lines = document.querySelector('#perspex-panel [aria-label="Jaxpr"][role="tree"]');
    const isThere = () =>
      title.textContent.startsWith(wanted) &&
      [...lines.querySelectorAll('.pspx-program-line')].some(one => /sin/.test(one.textContent));
    const begin = performance.now();
    item.click();
    while (!isThere()) {
      await new Promise(resolve => requestAnimationFrame(resolve));
    }
    return performance.now() - begin;
  }, name);
}

/** Milliseconds of the work from the pointer's move over each of some lines to the marks, and to the next frame. */
function timeToHover(page, many) {
  return page.page.evaluate(async times => {
    const pane = document.querySelector('#perspex-panel [aria-label="Jaxpr"][role="tree"]');
    const work = [];
    const frame = [];
    for (let i = 0; i < times; i++) {
      pane.scrollTop = 19 * 997 * i;
      await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 20)));
      const { top, left } = pane.getBoundingClientRect();
      const line = document.elementFromPoint(left + 90, top + 60).closest('.pspx-program-line');
      const begin = performance.now();
      line.dispatchEvent(new PointerEvent('pointermove', { bubbles: true }));
      pane.getBoundingClientRect();
      work.push(performance.now() - begin);
      if (!line.classList.contains('pspx-program-lit')) {
        throw new Error(`"${line.textContent}" is not marked`);
      }
      await new Promise(resolve => requestAnimationFrame(() => setTimeout(resolve, 0)));
      frame.push(performance.now() - begin);
    }
    return { work, frame };
  }, many);
}

async function openings(page) {
  await page.showPanel('program');
  await page.tab('program').getByLabel('Follow').uncheck();
  const first = [];
  const later = [];
  for (let i = 0; i < ROUNDS; i++) {
    await page.run(BIG);
    const item = page.tab('program').locator('.pspx-item', { hasText: `chain_${i}` });
    await item.waitFor();
    await page.idle();
    await page.page.waitForTimeout(500);
    first.push(await timeToOpen(page, `chain_${i}`));
    await page.tab('program').locator('.pspx-item', { hasText: '<lambda>' }).first().click();
    await page.page.locator('.pspx-program-title', { hasText: '<lambda>' }).waitFor();
    later.push(await timeToOpen(page, `chain_${i}`));
  }
  report('first opening, 10,000 equations', first, 1000);
  report('later opening', later, 1000);
}

/** The states between which `cost` takes turns, and what brings each about. */
const STATES = {
  'no panel': page => page.command('application:toggle-right-area'),
  "JupyterLab's own": page => page.command('property-inspector:show-panel'),
  'our panel': page => page.showPanel('time')
};

async function cost(page) {
  const wall = Object.keys(STATES).map(() => []);
  const cpu = Object.keys(STATES).map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, show] of Object.values(STATES).entries()) {
      await show(page);
      await page.page.waitForTimeout(500);
      await page.run(COST);
      await page.idle();
      wall[i].push(1000 * Number(await page.evaluate('took')));
      cpu[i].push(1000 * Number(await page.evaluate('worked')));
    }
  }
  for (const [i, state] of Object.keys(STATES).entries()) {
    report(`many calls, ${state}`, wall[i]);
    report('  processor time of the kernel', cpu[i]);
    if (i) {
      console.log(`  ${percent(wall[i], wall[0])} wall, ${percent(cpu[i], cpu[0])} processor time`);
    }
  }
}

/** By how much the median of some figures is above that of others, and the standard error of that. */
function percent(some, others) {
  const middle = all => [...all].sort((a, b) => a - b)[all.length >> 1];
  const again = all => all.map(() => all[Math.floor(Math.random() * all.length)]);
  const excess = (a, b) => 100 * (middle(a) / middle(b) - 1);
  const drawn = Array.from({ length: 1000 }, () => excess(again(some), again(others)));
  const mean = drawn.reduce((sum, one) => sum + one, 0) / drawn.length;
  const spread = Math.sqrt(drawn.reduce((sum, one) => sum + (one - mean) ** 2, 0) / drawn.length);
  const found = excess(some, others);
  return `${found < 0 ? '' : '+'}${found.toFixed(1)} % (s.e. ${spread.toFixed(1)})`;
}

const reason = missing();
if (reason) {
  console.error(`${reason}; the panel is measured in Chromium`);
  process.exit(1);
}
const server = await serve();
const chromium = await browser();
try {
  server.write('panel.ipynb', [SETUP, SMALL, LARGE, LOOP]);
  const context = await chromium.newContext({ viewport: { width: 1500, height: 900 } });
  const page = new Page(await context.newPage(), server, 'lab');
  await page.open('panel.ipynb');
  await page.showPanel('time');
  await page.run(1);
  await page.tab('time').locator('.pspx-entry').first().waitFor();
  if (ONLY.includes('row')) {
    const took = [];
    for (let i = 0; i < ROUNDS; i++) {
      took.push(await page.timeToRow(ROW));
    }
    report('from run to the row', took, 150);
  }
  if (ONLY.includes('cost')) {
    await cost(page);
  }
  if (ONLY.includes('open') || ONLY.includes('hover')) {
    await openings(page);
  }
  if (ONLY.includes('hover')) {
    const { work, frame } = await timeToHover(page, 20);
    report('hover: the work', work, 16);
    report('hover: until it is painted', frame);
  }
} finally {
  await chromium.close();
  await server.stop();
}
if (failed.length) {
  console.error(`Missed: ${failed.join(', ')}.`);
  process.exitCode = 1;
}
