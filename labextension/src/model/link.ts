/**
 * One comm to the kernel's target `perspex.panel`: messages in order, questions with their answers.
 *
 * The kernel numbers its messages. Jupyter's server drops messages when there are too many, so a
 * missing number means a missing message, and the link then asks for everything that is shown.
 */

import {
  type Ask,
  type Changes,
  type FromKernel,
  type FromPanel,
  type Hello,
  type Open,
  type Reply,
  type Topic,
  VERSION
} from '../contract';
import { trans } from '../views/trans';
import type { IComm } from './kernel';

/** An ask without the fields that the link adds. */
export type Question = Ask extends infer A
  ? A extends Ask
    ? Omit<A, 'type' | 'request'>
    : never
  : never;

/** What the kernel answers, or why no answer can come. */
export type Answer = Pick<Reply, 'ok' | 'text' | 'program' | 'compiled'>;

export interface ILinkListener {
  hello(hello: Hello): void;
  changes(changes: Changes): void;
  /** Messages are missing. */
  gap(): void;
  /** The kernel closed the comm, or has no such target. */
  closed(): void;
}

export class Link {
  constructor(
    private readonly _comm: IComm,
    client: string,
    topics: Topic[],
    private readonly _to: ILinkListener
  ) {
    _comm.onMsg = message => this._receive(message.content.data);
    _comm.onClose = () => {
      this._end(trans.__('The kernel closed the connection to the panel.'));
      _to.closed();
    };
    _comm.open({ version: VERSION, client, topics } satisfies Open);
  }

  /** Whether nothing more can come: a restart disposes the comms of a kernel silently. */
  get isOver(): boolean {
    return this._isOver || this._comm.isDisposed;
  }

  watch(topics: Topic[]): void {
    this._send({ type: 'watch', topics });
  }

  resync(): void {
    this._send({ type: 'resync' });
  }

  ask(question: Question): Promise<Answer> {
    if (this.isOver) {
      return Promise.resolve(notConnected());
    }
    const request = ++this._requests;
    return new Promise(resolve => {
      this._open.set(request, resolve);
      this._send({ type: 'ask', request, ...question });
    });
  }

  /** Close the comm, on the side of the kernel, too, if it can be reached. */
  close(): void {
    this._end(trans.__('The panel was closed.'));
    if (!this._comm.isDisposed) {
      this._comm.onClose = () => undefined;
      try {
        this._comm.close();
      } catch {
        // There is no kernel any more.
      }
    }
  }

  /** Everybody who waits for an answer gets this text. */
  private _end(text: string): void {
    this._isOver = true;
    this._settle({ ok: false, text });
  }

  private _settle(answer: Answer): void {
    const waiting = [...this._open.values()];
    this._open.clear();
    waiting.forEach(resolve => resolve(answer));
  }

  private _send(message: Exclude<FromPanel, Open>): void {
    if (!this.isOver) {
      this._comm.send(message);
    }
  }

  private _receive(data: unknown): void {
    if (this._isOver || !isNumbered(data) || data.number <= (this._last ?? -1)) {
      return;
    }
    const isMissing = data.number > (this._last ?? -1) + 1;
    this._last = data.number;
    if (isMissing) {
      this._to.gap();
      this.resync();
    }
    if (data.type === 'hello') {
      this._to.hello(data);
    } else if (data.type === 'changes') {
      this._to.changes(data);
    } else if (data.type === 'reply') {
      this._open.get(data.request)?.(data);
      this._open.delete(data.request);
    }
    if (isMissing) {
      const text = trans.__(
        'A message of the kernel was lost, perhaps the answer. The panel is up to date.'
      );
      this._settle({ ok: false, text });
    }
  }

  private _last: number | null = null;
  private _requests = 0;
  private readonly _open = new Map<number, (answer: Answer) => void>();
  private _isOver = false;
}

export function notConnected(): Answer {
  return { ok: false, text: trans.__('The kernel is not connected.') };
}

/** The kernel's messages are its own; only their numbers are checked. */
function isNumbered(data: unknown): data is FromKernel {
  return (
    typeof data === 'object' && data !== null && 'number' in data && typeof data.number === 'number'
  );
}
