/**
 * What the panel knows of one kernel.
 *
 * A model opens its comm when somebody first looks, tells the kernel which topics are looked at, and
 * finds its way back after a restart, a lost connection, or `%load_ext perspex`. It never asks twice
 * for what it was told is not there: a kernel without Perspex that answers hears one `comm_open`, and
 * another one only after a cell that names Perspex.
 */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import type {
  BufferRow,
  CellRow,
  Changes,
  Compiled,
  Hello,
  KeyRow,
  LineRow,
  MemoryRow,
  Program,
  ProgramRow,
  Topic
} from './contract';
import { type Answer, Link, type Question, TARGET, VERSION } from './link';
import { Table } from './table';

/** How far the connection has come. */
export type State =
  | { is: 'unasked' }
  | { is: 'connecting' }
  | { is: 'live'; hello: Hello }
  /** The kernel has no such comm target. */
  | { is: 'absent' }
  /** Not Python. */
  | { is: 'foreign'; language: string }
  | { is: 'version'; theirs: number; perspex: string }
  /** The kernel closed the comm: another page has this one's id, or there are too many. */
  | { is: 'closed' }
  /** The comms of the kernel arrive in another document of this page. */
  | { is: 'elsewhere' }
  | { is: 'dead' };

/** What of a kernel connection the model needs. */
export type Connection = Pick<
  Kernel.IKernelConnection,
  | 'id'
  | 'status'
  | 'connectionStatus'
  | 'handleComms'
  | 'isDisposed'
  | 'info'
  | 'createComm'
  | 'statusChanged'
  | 'connectionStatusChanged'
  | 'iopubMessage'
  | 'disposed'
>;

/** How often the kernel hears that the panel is still there, in ms; it gives up after an hour. */
const ALIVE = 20 * 60_000;

/**
 * When the kernel has not said hello after so long, in ms, it is asked again; then after twice as
 * long. Jupyter's server may let a page talk before it listens, and then the answer is lost.
 */
const ANSWER = 2_000;

/** A comm that the kernel closes so soon after it was opened is not opened again by itself, in ms. */
const SOON = 10_000;

/** How many documents of programs are kept; one of 10,000 equations is some megabytes. */
const DOCUMENTS = 4;

/** The name of this page, by which the kernel knows it again after a reload. */
export type Client = { readonly id: string; renew(): string };

export class KernelModel implements IDisposable {
  constructor(
    readonly kernel: Connection,
    private _client: Client
  ) {
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    kernel.iopubMessage.connect(this._onOutput, this);
  }

  readonly tables = {
    programs: new Table<ProgramRow>(),
    cells: new Table<CellRow>(),
    buffers: new Table<BufferRow>(),
    memory: new Table<MemoryRow>(),
    keys: new Table<KeyRow>(),
    lines: new Table<LineRow>()
  } satisfies Record<Topic, Table>;

  /** A topic whose rows changed, or `null` for the state. */
  get changed(): ISignal<this, Topic | null> {
    return this._changed;
  }

  get state(): State {
    return this._state;
  }

  /** The session whose ids the rows have: another one after a restart, when ids begin anew. */
  get session(): string | null {
    return this._session;
  }

  /** Whether the kernel measures device times by line. */
  get profiling(): boolean {
    return this._profiling;
  }

  /** `who` looks at these topics from now on, and at no others. */
  look(who: string, topics: readonly Topic[]): void {
    const before = this._topics();
    this._looks.set(who, topics);
    const now = this._topics();
    if (!now.length && this._state.is === 'unasked') {
      return;
    }
    if (!this._link) {
      this._connect();
    } else if (before.join() !== now.join()) {
      this._link.watch(now);
      this._expect();
    }
  }

  /** Try once more where there was no Perspex, or where the kernel closed the comm. */
  retry(): void {
    if (!this._link || this._link.isOver) {
      this._link = null;
      this._set({ is: 'unasked' });
      this._connect();
    }
  }

  ask(question: Question): Promise<Answer> {
    return this._link?.ask(question) ?? Promise.resolve({ ok: false, text: 'Not connected.' });
  }

  /**
   * The document of a program but for what `compiled` has; made by the kernel once. An error says why
   * there is none.
   */
  program(id: string): Promise<Program> {
    return this._document('program', id, this._programs);
  }

  /** What the program was compiled to; to be asked for when the rest is drawn, since it takes longer. */
  compiled(id: string): Promise<Compiled> {
    return this._document('compiled', id, this._compiled);
  }

  /** Turn device times by line on or off. */
  async profile(on: boolean): Promise<Answer> {
    const answer = await this.ask({ what: 'profile', on });
    if (answer.ok) {
      this._profiling = on;
      this._changed.emit(null);
    }
    return answer;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  dispose(): void {
    if (!this._disposed) {
      this._disposed = true;
      this._link?.close();
      window.clearInterval(this._alive);
      window.clearTimeout(this._expected);
      Signal.clearData(this);
    }
  }

  private async _document<What extends 'program' | 'compiled'>(
    what: What,
    id: string,
    documents: Map<string, NonNullable<Answer[What]>>
  ): Promise<NonNullable<Answer[What]>> {
    const known = documents.get(id);
    if (known) {
      return known;
    }
    const answer = await this.ask({ what, id });
    const made = answer[what];
    if (!answer.ok || !made) {
      throw new Error(answer.text);
    }
    documents.set(id, made);
    for (const old of [...documents.keys()].slice(0, -DOCUMENTS)) {
      documents.delete(old);
    }
    return made;
  }

  private _topics(): Topic[] {
    return [...new Set([...this._looks.values()].flat())].sort();
  }

  private _connect(): void {
    if (this._state.is !== 'unasked' || this._disposed || !this._topics().length) {
      return;
    }
    if (this.kernel.connectionStatus !== 'connected' || !READY.has(this.kernel.status)) {
      return; // `_onStatus` comes back to it.
    }
    if (!this.kernel.handleComms) {
      this._set({ is: 'elsewhere' });
      return;
    }
    this._set({ is: 'connecting' });
    void this.kernel.info.then(({ language_info: { name } }) => {
      if (this._state.is !== 'connecting' || this._link || this._disposed) {
        return;
      }
      if (name !== 'python') {
        this._set({ is: 'foreign', language: name });
        return;
      }
      this._open(ANSWER);
    });
  }

  /** Open a comm, and another one if nothing is heard of it for `patience` ms. */
  private _open(patience: number): void {
    const link = new Link(this.kernel.createComm(TARGET), this._client.id, this._topics(), {
      hello: hello => this._onHello(hello),
      changes: changes => this._onChanges(changes),
      gap: () => {
        this._each(table => table.missed());
        this._expect();
      },
      closed: () => this._onClosed()
    });
    this._link = link;
    window.setTimeout(() => {
      if (this._link === link && this._state.is === 'connecting' && !this._disposed) {
        link.close();
        this._open(2 * patience);
      }
    }, patience);
  }

  private _onHello(hello: Hello): void {
    if (hello.version !== VERSION) {
      this._link?.close();
      this._link = null;
      this._set({ is: 'version', theirs: hello.version, perspex: hello.perspex });
      return;
    }
    if (hello.session !== this._session) {
      this._empty();
      this._session = hello.session;
    }
    this._profiling = hello.profiling;
    this._since = Date.now();
    this._alive = window.setInterval(() => this._link?.watch(this._topics()), ALIVE);
    this._set({ is: 'live', hello });
    // Somebody may have come or gone since the comm was opened.
    this._link?.watch(this._topics());
    this._expect();
  }

  /**
   * What is shown is to be said as a whole within `patience` ms. What is not may have been lost, with
   * nothing after it whose number would tell: it is asked for again, each time twice as late.
   */
  private _expect(patience = ANSWER): void {
    window.clearTimeout(this._expected);
    this._expected = window.setTimeout(() => {
      if (this._state.is !== 'live' || !this._link || this._link.isOver || this._disposed) {
        return;
      }
      if (this._topics().some(topic => this.tables[topic].behind)) {
        this._link.resync();
        this._expect(2 * patience);
      }
    }, patience);
  }

  private _onClosed(): void {
    this._link = null;
    window.clearInterval(this._alive);
    if (this._state.is !== 'live') {
      this._set({ is: 'absent' });
      return;
    }
    this._set({ is: 'closed' });
    // Most often a copy of this page has its id. Pages that push each other out must not go on so.
    this._client.renew();
    if (Date.now() - this._since > SOON) {
      this.retry();
    }
  }

  private _onChanges(changes: Changes): void {
    for (const change of changes.topics) {
      // A later kernel may say more than this page knows.
      if (this.tables[change.topic]?.apply(change)) {
        this._changed.emit(change.topic);
      }
    }
  }

  private _onStatus(_: unknown, status: KernelMessage.Status): void {
    if (status === 'dead' || status === 'terminating') {
      this._forget();
      this._set({ is: 'dead' });
    } else if (status === 'restarting' || status === 'autorestarting' || this._link?.isOver) {
      this._forget();
      this._set({ is: 'unasked' });
    } else if (this._state.is === 'dead') {
      this._set({ is: 'unasked' });
    } else if (this._named && status === 'idle') {
      this._named = false;
      this.retry();
    }
    this._connect();
  }

  private _onConnection(_: unknown, status: Kernel.ConnectionStatus): void {
    if (status !== 'connected') {
      return;
    }
    if (this._link && !this._link.isOver) {
      // Whatever was said meanwhile is lost, and no later number may ever show it.
      this._each(table => table.missed());
      this._link.resync();
      this._expect();
    }
    this._connect();
  }

  private _onOutput(_: unknown, message: KernelMessage.IIOPubMessage): void {
    if (this._state.is === 'absent' && message.header.msg_type === 'execute_input') {
      this._named = /perspex/.test((message as KernelMessage.IExecuteInputMsg).content.code);
    }
  }

  private _forget(): void {
    this._link?.close();
    this._link = null;
    window.clearInterval(this._alive);
    this._profiling = false;
    this._empty();
  }

  /** What is known belongs to a session that is over. */
  private _empty(): void {
    this._session = null;
    this._programs.clear();
    this._compiled.clear();
    this._each(table => table.clear());
  }

  private _each(act: (table: Table) => void): void {
    Object.values(this.tables).forEach(table => act(table as Table));
  }

  private _set(state: State): void {
    this._state = state;
    this._changed.emit(null);
  }

  private _link: Link | null = null;
  private _state: State = { is: 'unasked' };
  private _session: string | null = null;
  private _since = 0;
  private _alive = 0;
  private _expected = 0;
  private _profiling = false;
  private _named = false;
  private _disposed = false;
  private _looks = new Map<string, readonly Topic[]>();
  private _programs = new Map<string, Program>();
  private _compiled = new Map<string, Compiled>();
  private _changed = new Signal<this, Topic | null>(this);
}

/** In these states a kernel takes messages; a busy one answers later. */
const READY = new Set<KernelMessage.Status>(['idle', 'busy']);
