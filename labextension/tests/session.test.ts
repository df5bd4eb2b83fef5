/** What tabs remember is of one session of one kernel: ids begin anew after a restart. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Row, Topic } from '../src/contract';
import { Connection } from '../src/model/connection';
import type { ISession } from '../src/model/session';
import { CacheTab } from '../src/tabs/cache';
import { KeysTab } from '../src/tabs/keys';
import { MemoryTab } from '../src/tabs/memory';
import { ProgramDocument, ProgramTab } from '../src/tabs/program';
import type { ITab } from '../src/tabs/tab';
import { TimeTab } from '../src/tabs/time';
import { FakeKernel, page } from './fake';
import { buffer, cell, changes, document as program, hello, key, program as row } from './rows';

/** A kernel that answers for its programs, each of which has the name of its row. */
class Notebook {
  readonly kernel = new FakeKernel();
  readonly connection: Connection;
  private _number = 0;
  private _answered = 0;

  constructor(readonly tab: ITab) {
    this.connection = new Connection(this.kernel, { id: 'page', renew: () => 'page' });
  }

  get session(): ISession {
    return this.connection.session;
  }

  /** The kernel's session begins, for the first time or again. */
  async begin(session: string): Promise<void> {
    this.connection.look('panel', this.tab.topics);
    await this.kernel.info;
    this._number = this._answered = 0;
    this.kernel.comm.say(hello({ session }));
  }

  async say(topic: Topic, rows: Row[], reset = true): Promise<void> {
    this.kernel.comm.say(changes((this._number += 1), topic, rows, { reset }));
    await this.draw();
  }

  /** Draw, wait until the kernel would be asked for what is followed, and answer. */
  async draw(): Promise<void> {
    this.tab.show(this.session);
    await vi.advanceTimersByTimeAsync(300);
    while (this.answer()) {
      await vi.advanceTimersByTimeAsync(0);
    }
  }

  /** Answer the next question; whether there was one. */
  answer(): boolean {
    const asked = this.kernel.comm.sent.filter(one => 'type' in one && one.type === 'ask');
    const ask = asked[this._answered] as { request: number; what: string; id: string } | undefined;
    if (!ask) {
      return false;
    }
    this._answered += 1;
    const { stablehlo, hlo, ...outline } = program();
    const { name } = this.session.tables.programs.get(ask.id)!;
    this.kernel.comm.say({
      type: 'reply',
      number: (this._number += 1),
      request: ask.request,
      ok: true,
      text: '',
      ...(ask.what === 'program'
        ? { program: { ...outline, name } }
        : { compiled: { stablehlo, hlo } })
    });
    return true;
  }
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    }
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** The name of the program whose document is in sight, if one is. */
const drawn = (tab: { node: HTMLElement }) =>
  tab.node.querySelector<HTMLElement>('.pspx-program-host')!.hidden
    ? null
    : tab.node.querySelector('.pspx-program-title')!.textContent.split(' ')[0];
const pressed = (tab: ITab) =>
  [...tab.node.querySelectorAll<HTMLElement>('.pspx-item[aria-pressed="true"]')].map(
    item => item.querySelector('.pspx-code')!.textContent
  );
const item = (tab: ITab, name: string) =>
  [...tab.node.querySelectorAll<HTMLElement>('.pspx-item')].find(one =>
    one.textContent.includes(name)
  )!;

test.each([true, false])('the program of a session goes with it (follow: %s)', async follows => {
  const tab = new ProgramTab(page);
  const session = new Notebook(tab);
  await session.begin('one');
  await session.say('programs', [row('1', { name: 'alpha' })]);
  expect([drawn(tab), pressed(tab)]).toEqual(['alpha', ['alpha']]);
  if (!follows) {
    item(tab, 'alpha').click();
  }
  session.kernel.restart();
  await session.begin('two');
  await session.say('programs', []);
  expect([drawn(tab), pressed(tab)]).toEqual([null, []]);
  await session.say('programs', [row('1', { name: 'beta' })], false);
  expect([drawn(tab), pressed(tab)]).toEqual(['beta', ['beta']]);
});

test('the program of a cell has the same name above its listing as in the list', async () => {
  const tab = new ProgramTab(page);
  const notebook = new Notebook(tab);
  await notebook.begin('one');
  await notebook.say('programs', [row('1', { name: 'cell', title: 'z', cell: 'In[8]' })]);
  const title = tab.node.querySelector('.pspx-program-title')!;
  expect(title.textContent).toBe('z In[8] f32[3]');
});

test('a program that is followed is shown when the kernel gets idle, though nothing else changes', async () => {
  const tab = new ProgramTab(page);
  const notebook = new Notebook(tab);
  await notebook.begin('one');
  notebook.kernel.status = 'busy';
  await notebook.say('programs', [row('1', { name: 'alpha' })]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(drawn(tab)).toBeNull();
  notebook.kernel.become('idle');
  await vi.advanceTimersByTimeAsync(300);
  expect(notebook.answer()).toBe(true);
  await vi.advanceTimersByTimeAsync(0);
  expect(drawn(tab)).toBe('alpha');
});

test('a choice survives a look at another notebook, and what is followed is followed again', async () => {
  const tab = new ProgramTab(page);
  const [one, two] = [new Notebook(tab), new Notebook(tab)];
  await one.begin('one');
  await two.begin('two');
  await one.say('programs', [row('1', { name: 'alpha' }), row('2', { name: 'beta' })]);
  item(tab, 'alpha').click();
  await one.draw();
  expect(drawn(tab)).toBe('alpha');
  await two.say('programs', [row('1', { name: 'gamma' })]);
  expect([drawn(tab), pressed(tab)]).toEqual(['gamma', ['gamma']]);
  await one.draw();
  expect([drawn(tab), pressed(tab)]).toEqual(['alpha', ['alpha']]);
  await two.say('programs', [row('2', { name: 'delta' })], false);
  expect(drawn(tab)).toBe('delta');
});

test('an answer for another notebook is not drawn, though the program has the same id', async () => {
  const shown = new ProgramDocument(page);
  const [one, two] = [new Notebook(new ProgramTab(page)), new Notebook(new ProgramTab(page))];
  for (const [session, name] of [
    [one, 'alpha'],
    [two, 'beta']
  ] as const) {
    await session.begin(name);
    session.kernel.comm.say(changes(9, 'programs', [row('1', { name })], { reset: true }));
  }
  void shown.show(one.session, '1');
  void shown.show(two.session, '1');
  for (const session of [two, one]) {
    session['_number'] = 9;
    session.answer();
    await vi.advanceTimersByTimeAsync(0);
  }
  expect(drawn(shown)).toBe('beta');
});

test('a program that another tab shows is of the notebook in front', async () => {
  const tab = new ProgramTab(page);
  const [one, two] = [new Notebook(tab), new Notebook(tab)];
  await one.begin('one');
  await two.begin('two');
  await one.say('programs', [row('1', { name: 'alpha' })]);
  two.kernel.comm.say(changes(1, 'programs', [row('1', { name: 'beta' })], { reset: true }));
  two['_number'] = 1;
  tab.choose(two.session, '1');
  await two.draw();
  expect([drawn(tab), pressed(tab)]).toEqual(['beta', ['beta']]);
});

test('a program in a tab of its own is not compared with those of another session', async () => {
  const tab = new ProgramTab(page);
  const session = new Notebook(tab);
  const shown = new ProgramDocument(page);
  await session.begin('one');
  const two = [row('1', { name: 'alpha' }), row('2', { name: 'alpha', signature: 'f32[9]' })];
  await session.say('programs', two);
  await shown.show(session.session, '2');
  session.kernel.restart();
  await session.begin('two');
  await session.say('programs', two);
  const before = session.kernel.comm.sent.length;
  const compare = shown.node.querySelector('input')!;
  compare.checked = true;
  compare.dispatchEvent(new Event('change'));
  expect(compare.checked).toBe(false);
  expect(shown.node.textContent).toContain('belongs to an earlier session of the kernel');
  expect(session.kernel.comm.sent).toHaveLength(before);
});

test('cells, courses of functions, keys and stories are closed again', async () => {
  const measured = (calls: number, device: number) => row('1', { calls, device });
  const key2 = () => [key('1'), key('2', { parent: '1' })];
  const time = new Notebook(new TimeTab(page));
  const keys = new Notebook(new KeysTab(page));
  const cache = new Notebook(new CacheTab(page, () => undefined));
  for (const session of ['one', 'two']) {
    await Promise.all([time, keys, cache].map(one => one.begin(session)));
    await time.say('cells', [cell('1')]);
    await time.say('programs', [measured(1, 1)]);
    const details = time.tab.node.querySelector('details')!;
    expect([session, details.open]).toEqual([session, false]);
    expect(time.tab.node.querySelector('polyline')).toBeNull();
    await time.say('programs', [measured(2, 3)]);
    expect(time.tab.node.querySelector('polyline')).not.toBeNull();
    details.open = true;
    details.dispatchEvent(new Event('toggle'));

    await keys.say('keys', key2());
    expect(keys.tab.node.querySelectorAll('.pspx-key')).toHaveLength(2);
    keys.tab.node.querySelector<HTMLElement>('.pspx-twist')!.click();
    expect(keys.tab.node.querySelectorAll('.pspx-key')).toHaveLength(1);

    await cache.say('programs', [row('1')]);
    expect(cache.tab.node.querySelector('.pspx-cache-story')).toBeNull();
    cache.tab.node.querySelector<HTMLElement>('.pspx-cache-name')!.click();
    expect(cache.tab.node.querySelector('.pspx-cache-story')).not.toBeNull();
    [time, keys, cache].forEach(one => one.kernel.restart());
  }
});

test('what was freed in a session is not said in the next one', async () => {
  const tab = new MemoryTab(page);
  const session = new Notebook(tab);
  await session.begin('one');
  await session.say('buffers', [buffer('x')]);
  session.session.ask = () => Promise.resolve({ ok: true, text: 'Removed x.' });
  tab.node.querySelector('button')!.click();
  await vi.advanceTimersByTimeAsync(0);
  expect(tab.node.textContent).toContain('Removed x.');
  session.kernel.restart();
  await session.begin('two');
  await session.say('buffers', []);
  expect(tab.node.textContent).not.toContain('Removed x.');
});
