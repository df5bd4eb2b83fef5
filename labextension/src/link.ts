/**
 * One comm to the kernel's target `perspex.panel`: messages in order, questions with their answers.
 *
 * The kernel numbers what it sends. Jupyter's server drops messages when there are too many, so a
 * missing number is a missing message, and everything that is shown is asked for again.
 */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';
import type { Ask, Changes, FromKernel, FromPanel, Hello, Open, Reply, Topic } from './contract';

export const TARGET = 'perspex.panel';
export const VERSION = 1;

/** What is asked: an `Ask` without what the link adds. */
export type Question = Omit<Ask, 'type' | 'request'>;

/** What a question is answered with when no answer can come. */
export type Answer = Pick<Reply, 'ok' | 'text' | 'program' | 'compiled'>;

/** Whom a link tells. */
export type Listener = {
  hello(hello: Hello): void;
  changes(changes: Changes): void;
  /** Messages are missing. */
  gap(): void;
  /** The kernel closed the comm, or has no such target. */
  closed(): void;
};

export class Link {
  constructor(comm: Kernel.IComm, client: string, topics: Topic[], to: Listener) {
    this._comm = comm;
    this._to = to;
    comm.onMsg = message => this._receive(message);
    comm.onClose = () => {
      this._end('The kernel closed the connection to the panel.');
      to.closed();
    };
    comm.open({ version: VERSION, client, topics } satisfies Open as JSONObject);
  }

  /** Whether nothing more can come: a restart disposes the comms of a kernel without a word. */
  get isOver(): boolean {
    return this._over || this._comm.isDisposed;
  }

  watch(topics: Topic[]): void {
    this._send({ type: 'watch', topics });
  }

  resync(): void {
    this._send({ type: 'resync' });
  }

  ask(question: Question): Promise<Answer> {
    if (this.isOver) {
      return Promise.resolve({ ok: false, text: 'The kernel is not connected.' });
    }
    const request = ++this._requests;
    return new Promise(resolve => {
      this._open.set(request, resolve);
      this._send({ type: 'ask', request, ...question });
    });
  }

  /** Say good-bye, where the kernel can hear it. */
  close(): void {
    this._end('The panel was closed.');
    if (!this._comm.isDisposed) {
      this._comm.onClose = () => undefined;
      try {
        this._comm.close();
      } catch {
        // There is no kernel any more that could be told.
      }
    }
  }

  /** Whoever waits for an answer gets this one. */
  private _end(text: string): void {
    this._over = true;
    this._settle({ ok: false, text });
  }

  private _settle(answer: Answer): void {
    const waiting = [...this._open.values()];
    this._open.clear();
    for (const resolve of waiting) {
      resolve(answer);
    }
  }

  private _send(message: Exclude<FromPanel, Open>): void {
    if (!this.isOver) {
      this._comm.send(message as unknown as JSONObject);
    }
  }

  private _receive(message: KernelMessage.ICommMsgMsg): void {
    const said = message.content.data as unknown as FromKernel;
    if (this._over || typeof said?.number !== 'number') {
      return;
    }
    if (this._last !== null && said.number <= this._last) {
      return; // Said before.
    }
    const missing = said.number > (this._last ?? -1) + 1;
    this._last = said.number;
    if (missing) {
      this._to.gap();
      this.resync();
    }
    if (said.type === 'hello') {
      this._to.hello(said);
    } else if (said.type === 'changes') {
      this._to.changes(said);
    } else if (said.type === 'reply') {
      this._open.get(said.request)?.(said);
      this._open.delete(said.request);
    }
    if (missing) {
      this._settle({
        ok: false,
        text: 'A message of the kernel was lost, perhaps the answer. What is shown is up to date.'
      });
    }
  }

  private _comm: Kernel.IComm;
  private _to: Listener;
  private _last: number | null = null;
  private _requests = 0;
  private _open = new Map<number, (answer: Answer) => void>();
  private _over = false;
}
