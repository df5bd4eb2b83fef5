/** A kernel and its comms as the panel sees them, which write down what was sent. */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { FromKernel, FromPanel, Row, Topic } from '../src/contract';
import type { IComm, IKernel } from '../src/model/kernel';
import type { Answer, Question } from '../src/model/link';
import { Session } from '../src/model/session';
import type { ITabPage } from '../src/tabs/tab';
import { changes } from './rows';

export class FakeComm implements IComm {
  sent: FromPanel[] = [];
  isDisposed = false;

  onMsg(_: { content: { data: unknown } }): void {}
  onClose(_: unknown): void {}

  open(data: unknown): void {
    this.sent.push(data as FromPanel);
  }

  send(data: unknown): void {
    this.sent.push(data as FromPanel);
  }

  close(): void {
    this.isDisposed = true;
  }

  /** The kernel says something. */
  say(message: FromKernel | Record<string, unknown>): void {
    this.onMsg({ content: { data: message } });
  }

  /** The kernel closes the comm. */
  end(): void {
    this.onClose({});
    this.isDisposed = true;
  }
}

export class FakeKernel implements IKernel {
  id = 'kernel';
  status: KernelMessage.Status = 'idle';
  connectionStatus: Kernel.ConnectionStatus = 'connected';
  handleComms = true;
  isDisposed = false;
  language = 'python';
  comms: FakeComm[] = [];
  statusChanged = new Signal<this, KernelMessage.Status>(this);
  connectionStatusChanged = new Signal<this, Kernel.ConnectionStatus>(this);
  iopubMessage = new Signal<this, { header: { msg_type: string }; content: unknown }>(this);
  disposed = new Signal<this, void>(this);

  get info(): Promise<{ language_info: { name: string } }> {
    return Promise.resolve({ language_info: { name: this.language } });
  }

  createComm(_target: string): FakeComm {
    const comm = new FakeComm();
    this.comms.push(comm);
    return comm;
  }

  /** The comm that was opened last. */
  get comm(): FakeComm {
    const comm = this.comms.at(-1);
    if (!comm) {
      throw new Error('No comm has been opened.');
    }
    return comm;
  }

  become(status: KernelMessage.Status): void {
    this.status = status;
    this.statusChanged.emit(status);
  }

  connect(status: Kernel.ConnectionStatus): void {
    this.connectionStatus = status;
    this.connectionStatusChanged.emit(status);
  }

  /** A restart, as JupyterLab reports it: comms are disposed silently. */
  restart(): void {
    this.become('restarting');
    this.comms.forEach(comm => (comm.isDisposed = true));
    this.become('starting');
    this.become('idle');
  }

  run(code: string): void {
    this.become('busy');
    this.iopubMessage.emit({ header: { msg_type: 'execute_input' }, content: { code } });
    this.become('idle');
  }
}

/** A session with these rows, whose kernel gives one answer to all questions. */
export function sessionOf(
  rows: Partial<Record<Topic, Row[]>>,
  answer: Answer = { ok: true, text: '' }
): { session: Session; asked: Question[] } {
  const asked: Question[] = [];
  const session = new Session({
    isIdle: () => true,
    ask: question => {
      asked.push(question);
      return Promise.resolve(answer);
    },
    changed: () => undefined
  });
  for (const [topic, put] of Object.entries(rows)) {
    session.apply(changes(0, topic as Topic, put, { reset: true }));
  }
  return { session, asked };
}

/** What the panel offers to tabs: lines are revealed nowhere, and the user agrees to everything. */
export const page: ITabPage = {
  reveal: () => undefined,
  confirm: () => Promise.resolve(true)
};
