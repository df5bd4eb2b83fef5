/**
 * The panel's connection to one kernel: how far it has come, and its timers.
 *
 * It opens a comm when somebody first looks, tells the kernel which topics are shown, and finds its
 * way back after a restart, a lost connection, or `%load_ext perspex`. It does not ask again for
 * what is not there: a kernel without Perspex hears one `comm_open`, and another one only after a cell
 * that names Perspex.
 */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { type ISignal, Signal } from '@lumino/signaling';
import { type Hello, TARGET, type Topic, VERSION } from '../contract';
import type { IClient, IKernel } from './kernel';
import { type Answer, Link, notConnected, type Question } from './link';
import { type ISession, Session } from './session';

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

/** How often the kernel hears that the panel is still there, in ms; it gives up after an hour. */
const ALIVE = 20 * 60_000;

/**
 * After so long without a hello, in ms, the panel opens another comm; then after twice as long.
 * Jupyter's server may let a page talk before it listens, and then the answer is lost.
 */
const ANSWER = 2_000;

/** So often rows that do not come are asked for; then another comm is opened. */
const RESYNCS = 2;

/** A comm that the kernel closes so soon after it was opened is not opened again by itself, in ms. */
const SOON = 10_000;

export class Connection implements IDisposable {
  constructor(
    readonly kernel: IKernel,
    private readonly _client: IClient
  ) {
    kernel.statusChanged.connect(this._onStatus, this);
    kernel.connectionStatusChanged.connect(this._onConnection, this);
    kernel.iopubMessage.connect(this._onOutput, this);
  }

  /** A topic whose rows changed, or `null` for the state or the session. */
  get changed(): ISignal<this, Topic | null> {
    return this._changed;
  }

  get state(): State {
    return this._state;
  }

  /** The session whose rows are shown: another one after a restart. */
  get session(): ISession {
    return this._session;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** `who` shows these topics from now on, and no others. */
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
    if (this._state.is !== 'connecting' && (this._last?.isOver ?? true)) {
      this._unlink();
      this._set({ is: 'unasked' });
      this._connect();
    }
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this._session.isOver = true;
      this._unlink();
      Signal.clearData(this);
    }
  }

  // ---- The comm ------------------------------------------------------------------------------

  /** The last link that was opened, answered or not. */
  private get _last(): Link | null {
    return this._opened.at(-1) ?? this._link;
  }

  private _topics(): Topic[] {
    return [...new Set([...this._looks.values()].flat())].sort();
  }

  private _connect(): void {
    if (this._state.is !== 'unasked' || this._isDisposed || !this._topics().length) {
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
    this.kernel.info.then(
      ({ language_info: { name } }) => {
        if (this._state.is !== 'connecting' || this._opened.length || this._isDisposed) {
          return;
        }
        if (name === 'python') {
          this._open(ANSWER);
        } else {
          this._set({ is: 'foreign', language: name });
        }
      },
      () => undefined // The kernel went before it said what it is; its status tells.
    );
  }

  /**
   * Open a comm, and another one if nothing is heard of it for `patience` ms. Earlier ones stay open
   * until the last one is answered: JupyterLab deletes the subshell that comms of one target share
   * when the last of them closes, although the next one may have just got it.
   */
  private _open(patience: number): void {
    const link: Link = new Link(this.kernel.createComm(TARGET), this._client.id, this._topics(), {
      hello: hello => this._onHello(link, hello),
      changes: changes => {
        if (link === this._link) {
          this._session.apply(changes);
        }
      },
      gap: () => {
        if (link === this._link) {
          this._session.missed();
          this._expect();
        }
      },
      closed: () => this._onClosed(link)
    });
    this._opened.push(link);
    window.clearTimeout(this._patience);
    this._patience = window.setTimeout(() => {
      if (this._state.is === 'connecting') {
        this._open(2 * patience);
      }
    }, patience);
  }

  private _onHello(link: Link, hello: Hello): void {
    // The kernel closes all comms of this page but the last.
    if (link !== this._opened.at(-1)) {
      return;
    }
    this._opened.pop();
    this._unlink();
    this._link = link;
    if (hello.version !== VERSION) {
      this._unlink();
      this._set({ is: 'version', theirs: hello.version, perspex: hello.perspex });
      return;
    }
    if (this._session.name !== null && this._session.name !== hello.session) {
      this._renew();
    }
    this._session.name = hello.session;
    this._session.isProfiling = hello.profiling;
    this._since = Date.now();
    this._alive = window.setInterval(() => this._link?.watch(this._topics()), ALIVE);
    this._set({ is: 'live', hello });
    // Somebody may have come or gone since the comm was opened.
    this._link?.watch(this._topics());
    this._expect();
  }

  /**
   * Expect all rows that are shown within `patience` ms. If some are missing, they may have been lost
   * with no later message whose number would tell. Ask again then, and wait twice as long; after some
   * asks open another comm.
   */
  private _expect(patience = ANSWER): void {
    window.clearTimeout(this._expected);
    this._expected = window.setTimeout(() => {
      if (this._state.is !== 'live' || !this._link || this._link.isOver) {
        return;
      }
      if (this._session.isBehind(this._topics())) {
        if (patience < ANSWER * 2 ** RESYNCS) {
          this._link.resync();
        } else {
          this._open(patience);
        }
        this._expect(2 * patience);
      }
    }, patience);
  }

  private _onClosed(link: Link): void {
    if (this._state.is === 'connecting' && link === this._opened.at(-1)) {
      this._unlink();
      this._set({ is: 'absent' });
    }
    if (link !== this._link) {
      return;
    }
    this._unlink();
    this._set({ is: 'closed' });
    // Most often a copy of this page has its id. Pages that push each other out must not go on so.
    this._client.renew();
    if (Date.now() - this._since > SOON) {
      this.retry();
    }
  }

  // ---- The kernel ----------------------------------------------------------------------------

  private _onStatus(_: unknown, status: KernelMessage.Status): void {
    if (status === 'dead' || status === 'terminating') {
      this._forget();
      this._set({ is: 'dead' });
    } else if (BEGINS.has(status) || this._last?.isOver) {
      this._forget();
      this._set({ is: 'unasked' });
    } else if (this._state.is === 'dead') {
      this._set({ is: 'unasked' });
    } else if (this._isNamed && status === 'idle') {
      this._isNamed = false;
      this.retry();
    }
    this._connect();
  }

  private _onConnection(_: unknown, status: Kernel.ConnectionStatus): void {
    if (status !== 'connected') {
      return;
    }
    if (this._link && !this._link.isOver) {
      // Messages of the meantime are lost, and no later number may ever show it.
      this._session.missed();
      this._link.resync();
      this._expect();
    }
    this._connect();
  }

  private _onOutput(
    _: unknown,
    { header, content }: { header: { msg_type: string }; content: unknown }
  ): void {
    if (this._state.is === 'absent' && header.msg_type === 'execute_input') {
      this._isNamed = /perspex/.test((content as { code: string }).code);
    }
  }

  // ---- The session ---------------------------------------------------------------------------

  /** The kernel's session is over. */
  private _forget(): void {
    this._unlink();
    this._renew();
  }

  private _renew(): void {
    this._session.isOver = true;
    this._session = this._begin();
  }

  private _begin(): Session {
    const session: Session = new Session({
      isIdle: () => this.kernel.status === 'idle',
      ask: question => this._ask(session, question),
      changed: topic => this._changed.emit(topic)
    });
    return session;
  }

  /** A question of a session that is over is about rows that no longer exist. */
  private _ask(session: Session, question: Question): Promise<Answer> {
    return session.isOver || !this._link
      ? Promise.resolve(notConnected())
      : this._link.ask(question);
  }

  /** Close all comms, and stop all timers. */
  private _unlink(): void {
    this._opened.splice(0).forEach(link => link.close());
    this._link?.close();
    this._link = null;
    window.clearInterval(this._alive);
    window.clearTimeout(this._patience);
    window.clearTimeout(this._expected);
  }

  private _set(state: State): void {
    this._state = state;
    this._changed.emit(null);
  }

  private _link: Link | null = null;
  /** Links that have not been answered yet. */
  private readonly _opened: Link[] = [];
  private _state: State = { is: 'unasked' };
  private _since = 0;
  private _alive = 0;
  private _patience = 0;
  private _expected = 0;
  private _isNamed = false;
  private _isDisposed = false;
  private readonly _looks = new Map<string, readonly Topic[]>();
  private readonly _changed = new Signal<this, Topic | null>(this);
  private _session = this._begin();
}

/**
 * In these states the comms of a kernel are over. A kernel that restarts itself says only that it is
 * starting: for the page, its comms live on.
 */
const BEGINS = new Set<KernelMessage.Status>(['restarting', 'autorestarting', 'starting']);
/** In these states a kernel takes messages; a busy one answers later. */
const READY = new Set<KernelMessage.Status>(['idle', 'busy']);
