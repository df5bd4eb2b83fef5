/** The connection to a kernel: numbers and gaps, restarts, lost messages, kernels without Perspex. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Connection } from '../src/model/connection';
import { FakeKernel } from './fake';
import { cell, changes, document, hello, key, program } from './rows';

let kernel: FakeKernel;
let connection: Connection;
let client: { id: string; renew(): string };

beforeEach(() => {
  kernel = new FakeKernel();
  client = { id: 'page', renew: () => (client.id = 'page again') };
  connection = new Connection(kernel, client);
});

/** The panel is shown, and the kernel has said hello. */
async function live(): Promise<void> {
  connection.look('panel', ['cells']);
  await kernel.info;
  kernel.comm.say(hello());
}

const ids = () => connection.session.tables.cells.inOrder().map(row => row.id);
const asked = (type: string) =>
  kernel.comm.sent.filter(message => 'type' in message && message.type === type);

describe('rows', () => {
  test('are put, replaced and dropped by id, in order', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a'), cell('b')], { reset: true }));
    kernel.comm.say(changes(2, 'cells', [cell('c')], { drop: ['a'], forgotten: 4 }));
    expect(ids()).toEqual(['b', 'c']);
    expect(connection.session.tables.cells.forgotten).toBe(4);
    const b = connection.session.tables.cells.get('b')!;
    kernel.comm.say(changes(3, 'cells', [{ ...b, wall: 9 }]));
    expect(ids()).toEqual(['b', 'c']);
    expect(connection.session.tables.cells.get('b')!.wall).toBe(9);
    kernel.comm.say(changes(4, 'cells', [cell('d')], { reset: true }));
    expect(ids()).toEqual(['d']);
  });

  test('of a large table come in parts', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    kernel.comm.say(changes(2, 'cells', [cell('b')]));
    expect(ids()).toEqual(['a', 'b']);
  });

  test('2,000 of them arrive, and none twice', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [], { reset: true }));
    for (let i = 0; i < 2000; i++) {
      kernel.comm.say(changes(i + 2, 'cells', [cell(`c${i}`)]));
    }
    expect(new Set(ids()).size).toBe(2000);
    expect(asked('resync')).toEqual([]);
  });

  test('of a topic that this page does not know are left alone', async () => {
    await live();
    kernel.comm.say({ ...changes(1, 'cells', []), topics: [{ topic: 'weather', put: [{}] }] });
    kernel.comm.say(changes(2, 'cells', [cell('a')], { reset: true }));
    expect(ids()).toEqual(['a']);
  });
});

test('messages that are missing before the first are missing', async () => {
  connection.look('panel', ['cells']);
  await kernel.info;
  kernel.comm.say({ ...hello(), number: 2 });
  expect(asked('resync')).toHaveLength(1);
});

describe('a missing number', () => {
  beforeEach(async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    kernel.comm.say(changes(3, 'cells', [cell('c')]));
  });

  test('makes the panel ask for all, and believe nothing until then', () => {
    expect(asked('resync')).toHaveLength(1);
    kernel.comm.say(changes(4, 'cells', [cell('d')]));
    expect(ids()).toEqual(['a']);
    kernel.comm.say(changes(5, 'cells', [cell('a'), cell('b')], { reset: true }));
    kernel.comm.say(changes(6, 'cells', [cell('e')]));
    expect(ids()).toEqual(['a', 'b', 'e']);
    expect(asked('resync')).toHaveLength(1);
  });

  test('concerns each topic until that one was said again', () => {
    kernel.comm.say(changes(4, 'keys', [key('k')], { reset: true }));
    expect(connection.session.tables.keys.size).toBe(1);
    kernel.comm.say(changes(5, 'cells', [cell('d')]));
    expect(ids()).toEqual(['a']);
  });

  test('that is found by a snapshot, loses nothing of the snapshot', () => {
    kernel.comm.say(changes(7, 'cells', [cell('x')], { reset: true }));
    expect(ids()).toEqual(['x']);
    expect(asked('resync')).toHaveLength(2);
  });

  test('a number that came before is ignored', () => {
    kernel.comm.say(changes(4, 'cells', [cell('x')], { reset: true }));
    kernel.comm.say(changes(4, 'cells', [], { reset: true }));
    kernel.comm.say(changes(2, 'cells', [], { reset: true }));
    expect(ids()).toEqual(['x']);
  });
});

describe('questions', () => {
  test('get their answers, in any order', async () => {
    await live();
    const first = connection.session.ask({ what: 'evict', id: 'a' });
    const second = connection.session.ask({ what: 'clear' });
    const [one, two] = asked('ask') as { request: number }[];
    kernel.comm.say({ type: 'reply', number: 1, request: two.request, ok: true, text: '2' });
    kernel.comm.say({ type: 'reply', number: 2, request: one.request, ok: false, text: '1' });
    expect((await first).text).toBe('1');
    expect((await second).ok).toBe(true);
  });

  test('are settled when their answer can no longer come', async () => {
    await live();
    const lost = connection.session.ask({ what: 'clear' });
    kernel.comm.say(changes(3, 'cells', []));
    expect((await lost).text).toMatch(/lost/);
    const closed = connection.session.ask({ what: 'clear' });
    kernel.comm.end();
    expect((await closed).ok).toBe(false);
    kernel.restart();
    expect((await connection.session.ask({ what: 'clear' })).ok).toBe(false);
  });

  test('a document is asked for once, and an error is the reason that the kernel gave', async () => {
    await live();
    const shown = connection.session.program('a');
    kernel.comm.say({
      type: 'reply',
      number: 1,
      request: 1,
      ok: true,
      text: '',
      program: document()
    });
    expect(await shown).toBe(await connection.session.program('a'));
    expect(asked('ask')).toHaveLength(1);
    const { stablehlo, hlo } = document();
    const rest = connection.session.compiled('a');
    const compiled = { stablehlo, hlo };
    kernel.comm.say({ type: 'reply', number: 2, request: 2, ok: true, text: '', compiled });
    expect(await rest).toBe(await connection.session.compiled('a'));
    expect(asked('ask')).toHaveLength(2);
    const gone = connection.session.program('b');
    kernel.comm.say({ type: 'reply', number: 3, request: 3, ok: false, text: 'It is gone.' });
    await expect(gone).rejects.toThrow('It is gone.');
  });

  test('measuring is on when the kernel says so, and not before', async () => {
    await live();
    const on = connection.session.profile(true);
    expect(connection.session.isProfiling).toBe(false);
    kernel.comm.say({ type: 'reply', number: 1, request: 1, ok: true, text: 'on' });
    await on;
    expect(connection.session.isProfiling).toBe(true);
    const refused = connection.session.profile(false);
    kernel.comm.say({ type: 'reply', number: 2, request: 2, ok: false, text: 'no' });
    await refused;
    expect(connection.session.isProfiling).toBe(true);
  });
});

describe('looking', () => {
  test('opens a comm when somebody looks for the first time, and one for all', async () => {
    connection.look('panel', []);
    await kernel.info;
    expect(kernel.comms).toHaveLength(0);
    await live();
    expect(kernel.comms).toHaveLength(1);
    connection.look('heat', ['lines']);
    connection.look('panel', []);
    expect(kernel.comms).toHaveLength(1);
    expect(asked('watch').slice(-2)).toEqual([
      { type: 'watch', topics: ['cells', 'lines'] },
      { type: 'watch', topics: ['lines'] }
    ]);
    const before = kernel.comm.sent.length;
    connection.look('heat', ['lines']);
    expect(kernel.comm.sent).toHaveLength(before);
  });

  test('waits for a kernel that starts', async () => {
    kernel.status = 'starting';
    connection.look('panel', ['cells']);
    await kernel.info;
    expect(kernel.comms).toHaveLength(0);
    kernel.become('idle');
    await kernel.info;
    expect(kernel.comms).toHaveLength(1);
  });

  test('says that it is still there', async () => {
    vi.useFakeTimers();
    try {
      await live();
      kernel.comm.say(changes(1, 'cells', [], { reset: true }));
      const before = asked('watch').length;
      vi.advanceTimersByTime(3600_000);
      expect(asked('watch').length).toBeGreaterThan(before);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a hello that is lost', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('is asked for again, under the same name, less and less often', async () => {
    connection.look('panel', ['cells']);
    await kernel.info;
    vi.advanceTimersByTime(3600_000);
    expect(kernel.comms.length).toBeGreaterThan(5);
    expect(kernel.comms.length).toBeLessThan(13);
    expect(kernel.comm.sent[0]).toMatchObject({ client: 'page', topics: ['cells'] });
    kernel.comm.say(hello());
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    expect(ids()).toEqual(['a']);
    // Earlier comms stay open until then: closing the only one would end its subshell in JupyterLab.
    expect(kernel.comms.filter(comm => !comm.isDisposed)).toEqual([kernel.comm]);
  });

  test('that comes late, for a comm that is not the last, is left alone', async () => {
    connection.look('panel', ['cells']);
    await kernel.info;
    vi.advanceTimersByTime(3_000);
    const [first, second] = kernel.comms;
    first?.say(hello());
    expect(connection.state.is).toBe('connecting');
    second?.say(hello());
    expect(connection.state.is).toBe('live');
    expect(first?.isDisposed).toBe(true);
  });

  test('is not asked for once it came, nor of a kernel that has no Perspex, nor when nobody looks', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [], { reset: true }));
    vi.advanceTimersByTime(3600_000);
    expect(kernel.comms).toHaveLength(1);
    kernel.restart();
    await kernel.info;
    kernel.comm.end();
    expect(connection.state.is).toBe('absent');
    vi.advanceTimersByTime(3600_000);
    expect(kernel.comms).toHaveLength(2);
    connection.retry();
    await kernel.info;
    connection.dispose();
    vi.advanceTimersByTime(3600_000);
    expect(kernel.comms).toHaveLength(3);
  });
});

describe('a restart', () => {
  test('forgets the rows and opens another comm under the same name', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    kernel.restart();
    expect(ids()).toEqual([]);
    await kernel.info;
    expect(kernel.comms).toHaveLength(2);
    expect(kernel.comm.sent[0]).toMatchObject({ client: 'page', topics: ['cells'] });
    kernel.comm.say(hello({ session: 'two' }));
    kernel.comm.say(changes(1, 'cells', [cell('z')], { reset: true }));
    expect(ids()).toEqual(['z']);
  });

  test('by the kernel itself does the same, although nobody disposes the comm', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    kernel.become('starting');
    kernel.become('idle');
    expect(ids()).toEqual([]);
    await kernel.info;
    expect(kernel.comms).toHaveLength(2);
    kernel.comm.say(hello({ session: 'two' }));
    expect(connection.state.is).toBe('live');
  });

  test('by which the kernel of a comm goes, is forgotten all the same', async () => {
    for (const end of [
      () => kernel.restart(),
      () => kernel.become('dead'),
      () => connection.dispose()
    ]) {
      kernel = new FakeKernel();
      connection = new Connection(kernel, client);
      await live();
      kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
      kernel.comm.close = () => {
        throw new Error('Cannot close');
      };
      const waiting = connection.session.ask({ what: 'clear' });
      expect(end).not.toThrow();
      expect((await waiting).ok).toBe(false);
      expect(connection.isDisposed ? [] : ids()).toEqual([]);
    }
  });

  test('a kernel that died comes back when it is started again', async () => {
    await live();
    kernel.become('dead');
    expect(connection.state.is).toBe('dead');
    kernel.become('starting');
    kernel.become('idle');
    await kernel.info;
    expect(kernel.comms).toHaveLength(2);
  });
});

test('another session of a kernel that did not restart has other rows', async () => {
  await live();
  kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
  kernel.comm.end();
  connection.retry();
  await kernel.info;
  kernel.comm.say(hello());
  expect(ids()).toEqual(['a']);
  const { session } = connection;
  kernel.comm.end();
  connection.retry();
  await kernel.info;
  kernel.comm.say(hello({ session: 'two' }));
  expect(ids()).toEqual([]);
  expect([session.isOver, connection.session.isOver]).toEqual([true, false]);
});

describe('a connection that was lost', () => {
  test('asks for all that was missed, and believes nothing until then', async () => {
    await live();
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    kernel.connect('connecting');
    kernel.connect('connected');
    expect(asked('resync')).toHaveLength(1);
    kernel.comm.say(changes(2, 'cells', [cell('b')]));
    expect(ids()).toEqual(['a']);
    kernel.comm.say(changes(3, 'cells', [cell('a'), cell('b')], { reset: true }));
    expect(ids()).toEqual(['a', 'b']);
  });
});

describe('what is lost at the end', () => {
  beforeEach(async () => {
    vi.useFakeTimers();
    await live();
  });
  afterEach(() => void vi.useRealTimers());

  test('is asked for again, later each time, until it is said', () => {
    expect(asked('resync')).toHaveLength(0);
    vi.advanceTimersByTime(2_100);
    expect(asked('resync')).toHaveLength(1);
    vi.advanceTimersByTime(2_000);
    expect(asked('resync')).toHaveLength(1);
    vi.advanceTimersByTime(2_000);
    expect(asked('resync')).toHaveLength(2);
    kernel.comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
    vi.advanceTimersByTime(60_000);
    expect(asked('resync')).toHaveLength(2);
    expect(ids()).toEqual(['a']);
  });

  test('and does not come on this comm, is asked for on another one', () => {
    vi.advanceTimersByTime(13_000);
    expect(asked('resync')).toHaveLength(2);
    const [first] = kernel.comms;
    vi.advanceTimersByTime(2_000);
    expect(kernel.comms).toHaveLength(2);
    expect(kernel.comm.sent[0]).toMatchObject({ client: 'page', topics: ['cells'] });
    // Until the kernel answers it, the first one counts.
    expect(connection.state.is).toBe('live');
    first?.say(changes(1, 'cells', [cell('a')], { reset: true }));
    expect(ids()).toEqual(['a']);
    kernel.comm.say(hello());
    expect(first?.isDisposed).toBe(true);
    kernel.comm.say(changes(1, 'cells', [cell('b')], { reset: true }));
    expect(ids()).toEqual(['b']);
    vi.advanceTimersByTime(3600_000);
    expect(kernel.comms).toHaveLength(2);
  });

  test('is not asked for where it was said', () => {
    kernel.comm.say(changes(1, 'cells', [], { reset: true }));
    vi.advanceTimersByTime(60_000);
    expect(asked('resync')).toHaveLength(0);
  });

  test('nor is a topic that nobody shows', () => {
    kernel.comm.say(changes(1, 'cells', [], { reset: true }));
    connection.look('panel', ['cells', 'keys']);
    connection.look('panel', ['cells']);
    vi.advanceTimersByTime(60_000);
    expect(asked('resync')).toHaveLength(0);
  });
});

describe('a kernel without Perspex', () => {
  beforeEach(async () => {
    connection.look('panel', ['cells']);
    await kernel.info;
    kernel.comm.end();
  });

  test('is asked once, whatever runs in it', async () => {
    expect(connection.state.is).toBe('absent');
    kernel.run('1 + 1');
    connection.look('panel', ['keys']);
    await kernel.info;
    expect(kernel.comms).toHaveLength(1);
  });

  test('is asked again after a cell that names Perspex, or when the user says so', async () => {
    kernel.run('%load_ext perspex');
    await kernel.info;
    expect(kernel.comms).toHaveLength(2);
    kernel.comm.end();
    connection.retry();
    await kernel.info;
    expect(kernel.comms).toHaveLength(3);
    kernel.comm.say(hello());
    expect(connection.state.is).toBe('live');
  });

  test('is asked again after a restart', async () => {
    kernel.restart();
    await kernel.info;
    expect(kernel.comms).toHaveLength(2);
  });
});

test('a kernel of another language is not asked', async () => {
  kernel.language = 'R';
  connection.look('panel', ['cells']);
  await kernel.info;
  expect(connection.state).toEqual({ is: 'foreign', language: 'R' });
  expect(kernel.comms).toHaveLength(0);
});

test('a connection without comms is not asked', () => {
  kernel.handleComms = false;
  connection.look('panel', ['cells']);
  expect(connection.state.is).toBe('elsewhere');
});

test('another version shows nothing but that', async () => {
  connection.look('panel', ['cells']);
  await kernel.info;
  kernel.comm.say(hello({ version: 2, perspex: '9.0' }));
  expect(connection.state).toEqual({ is: 'version', theirs: 2, perspex: '9.0' });
  expect(kernel.comm.isDisposed).toBe(true);
});

describe('a comm that the kernel closes', () => {
  test('is opened again under another name, unless that happens at once', async () => {
    vi.useFakeTimers();
    try {
      await live();
      kernel.comm.say(changes(1, 'cells', [], { reset: true }));
      vi.advanceTimersByTime(60_000);
      kernel.comm.end();
      await kernel.info;
      expect(kernel.comms).toHaveLength(2);
      expect(kernel.comm.sent[0]).toMatchObject({ client: 'page again' });
      kernel.comm.say(hello());
      kernel.comm.end();
      await kernel.info;
      expect(kernel.comms).toHaveLength(2);
      expect(connection.state.is).toBe('closed');
    } finally {
      vi.useRealTimers();
    }
  });
});

test('a view hears of what changed, and of the state', async () => {
  const heard: unknown[] = [];
  connection.changed.connect((_, topic) => heard.push(topic));
  await live();
  kernel.comm.say(changes(1, 'programs', [program('a')], { reset: true }));
  expect(heard).toContain(null);
  expect(heard.at(-1)).toBe('programs');
});

test('a disposed connection opens nothing, hears nothing, and leaves no timer', async () => {
  vi.useFakeTimers();
  await live();
  const comm = kernel.comm;
  connection.dispose();
  expect(comm.isDisposed).toBe(true);
  comm.say(changes(1, 'cells', [cell('a')], { reset: true }));
  kernel.restart();
  await kernel.info;
  expect(kernel.comms).toHaveLength(1);
  expect(ids()).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});
