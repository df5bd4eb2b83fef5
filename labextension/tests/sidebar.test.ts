/** The panel around its tabs: tabs of others, what the kernel is asked for, languages. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Connection } from '../src/model/connection';
import { adviceOn } from '../src/panel/advice';
import type { IFollower } from '../src/panel/follow';
import { Sidebar } from '../src/panel/sidebar';
import { CacheTab } from '../src/tabs/cache';
import { KeysTab } from '../src/tabs/keys';
import { MemoryTab } from '../src/tabs/memory';
import { ProgramTab } from '../src/tabs/program';
import type { ITab } from '../src/tabs/tab';
import { TimeTab } from '../src/tabs/time';
import type { IPerspexPanel } from '../src/tokens';
import { english, speak } from '../src/views/trans';
import documentation from '../../docs/panel.md?raw';
import example from './example.ts?raw';
import plugin from './example';
import { FakeKernel, page, sessionOf } from './fake';
import { changes, hello, program } from './rows';

class FakeFollower implements IFollower {
  readonly changed = new Signal<this, void>(this);
  readonly name = 'a.ipynb';
  readonly kernel = new FakeKernel();
  readonly connection = new Connection(this.kernel, { id: 'page', renew: () => 'page' });
}

let follower: FakeFollower;
let sidebar: Sidebar;
let panel: IPerspexPanel;

beforeEach(async () => {
  vi.useFakeTimers();
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    }
  );
  follower = new FakeFollower();
  sidebar = new Sidebar(follower);
  panel = { addTab: make => sidebar.addTab(make(page)) };
  sidebar.addTab(new TimeTab(page));
  Widget.attach(sidebar, document.body);
  await vi.advanceTimersByTimeAsync(0);
  follower.kernel.comm.say(hello());
  await frame();
});

afterEach(() => {
  sidebar.dispose();
  follower.connection.dispose();
  speak(english);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const frame = () => vi.advanceTimersByTimeAsync(50);
const labels = () => [...sidebar.node.querySelectorAll('[role="tab"]')].map(tab => tab.textContent);
const visible = () =>
  [...sidebar.node.querySelectorAll<HTMLElement>('[role="tabpanel"]')]
    .filter(tab => !tab.hidden)
    .map(tab => tab.id);
const watched = () =>
  follower.kernel.comm.sent.filter(message => 'type' in message && message.type === 'watch').at(-1);

test('the kernel is asked to restart after a question, and says why it cannot', async () => {
  const press = (name: string) =>
    [...sidebar.node.querySelectorAll<HTMLElement>('.pspx-head button')]
      .find(button => button.textContent === name)!
      .click();
  const asked = () =>
    follower.kernel.comm.sent.filter(message => 'what' in message && message.what === 'restart');
  press('Restart…');
  press('Cancel');
  expect(asked()).toEqual([]);
  press('Restart…');
  press('Restart');
  expect(asked()).toEqual([{ type: 'ask', request: 1, what: 'restart' }]);
  expect(sidebar.node.querySelector('.pspx-head')!.textContent).toContain('Restarting…');
  const text = 'Cannot restart: the session cannot be written.';
  follower.kernel.comm.say({ type: 'reply', number: 1, request: 1, ok: false, text });
  await frame();
  expect(sidebar.node.querySelector('.pspx-head')!.textContent).toContain(text);
});

test('another extension adds a tab: the example of the documentation', async () => {
  expect(documentation).toContain('```typescript\n' + example + '```');

  void plugin.activate({} as JupyterFrontEnd, panel);
  expect(labels()).toEqual(['Time', 'Count']);
  sidebar.bringToFront('count');
  expect(watched()).toEqual({ type: 'watch', topics: ['badges', 'memory', 'programs'] });
  const rows = [program('1'), program('2', { found: 'disk' })];
  follower.kernel.comm.say(changes(1, 'programs', rows, { reset: true }));
  await frame();
  expect(visible()).toEqual(['perspex-panel-count']);
  expect(sidebar.node.textContent).toContain('XLA compiled 1 of 2 programs.');
});

test('a tab goes when it is disposed, and the first one is in front then', async () => {
  const dispose = vi.fn();
  const node = document.createElement('div');
  const tab: ITab = { name: 'more', label: 'More', topics: [], node, show: vi.fn(), dispose };
  const added = panel.addTab(() => tab);
  expect(() => panel.addTab(() => tab)).toThrow('already has a tab with the name more');
  sidebar.bringToFront('more');
  await frame();
  expect(visible()).toEqual(['perspex-panel-more']);
  added.dispose();
  await frame();
  expect([labels(), visible()]).toEqual([['Time'], ['perspex-panel-time']]);
  expect(dispose).toHaveBeenCalledOnce();
  added.dispose();
  expect(dispose).toHaveBeenCalledOnce();
});

/** Texts and labels that a person meets. */
function texts(node: Element): string[] {
  const all = [node, ...node.querySelectorAll('*')].filter(one => one.tagName !== 'STYLE');
  const said = all.flatMap(one => [
    ...['aria-label', 'title', 'placeholder'].map(name => one.getAttribute(name) ?? ''),
    ...[...one.childNodes].map(child => (child.nodeType === 3 ? (child.textContent ?? '') : ''))
  ]);
  return said.filter(text => /\p{L}/u.test(text));
}

test('every text of the tabs is translated', () => {
  speak({ __: text => `[${text}]`, _n: (_, many) => `[${many}]` });
  const tabs: ITab[] = [
    new ProgramTab(page),
    new CacheTab(page, () => undefined),
    new TimeTab(page),
    new MemoryTab(page),
    new KeysTab(page)
  ];
  const { session } = sessionOf({});
  const found = tabs.flatMap(tab => {
    tab.show(session);
    return [tab.label, ...texts(tab.node)];
  });
  expect(found.length).toBeGreaterThan(80);
  expect(found.filter(text => !/^\s*\[.*\]/s.test(text))).toEqual(['0 B']);
  for (const state of ['connecting', 'absent', 'closed', 'elsewhere', 'dead'] as const) {
    const advice = document.createElement('div');
    advice.append(...adviceOn({ is: state }, () => undefined));
    const said = texts(advice).filter(text => !/^%load_ext|^pip install/.test(text));
    expect(said.filter(text => !/^\s*\[.*\]/s.test(text))).toEqual([]);
  }
  tabs.forEach(tab => tab.dispose?.());
});
