/** A kernel connection and its comms, as the panel sees them; what was sent is written down. */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { FromKernel, FromPanel } from '../src/contract';
import type { Connection } from '../src/model';

export class FakeComm {
  sent: FromPanel[] = [];
  isDisposed = false;
  onMsg: (message: KernelMessage.ICommMsgMsg) => void = () => undefined;
  onClose: (message: KernelMessage.ICommCloseMsg) => void = () => undefined;

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
    this.onMsg({ content: { data: message } } as unknown as KernelMessage.ICommMsgMsg);
  }

  /** The kernel closes the comm. */
  end(): void {
    this.onClose({} as KernelMessage.ICommCloseMsg);
    this.isDisposed = true;
  }
}

export class FakeKernel {
  id = 'kernel';
  status: KernelMessage.Status = 'idle';
  connectionStatus: Kernel.ConnectionStatus = 'connected';
  handleComms = true;
  isDisposed = false;
  language = 'python';
  comms: FakeComm[] = [];
  statusChanged = new Signal<this, KernelMessage.Status>(this);
  connectionStatusChanged = new Signal<this, Kernel.ConnectionStatus>(this);
  iopubMessage = new Signal<this, KernelMessage.IIOPubMessage>(this);
  disposed = new Signal<this, void>(this);

  get info(): Promise<KernelMessage.IInfoReply> {
    return Promise.resolve({
      language_info: { name: this.language }
    } as KernelMessage.IInfoReply);
  }

  createComm(_target: string): Kernel.IComm {
    const comm = new FakeComm();
    this.comms.push(comm);
    return comm as unknown as Kernel.IComm;
  }

  get comm(): FakeComm {
    return this.comms[this.comms.length - 1];
  }

  become(status: KernelMessage.Status): void {
    this.status = status;
    this.statusChanged.emit(status);
  }

  connect(status: Kernel.ConnectionStatus): void {
    this.connectionStatus = status;
    this.connectionStatusChanged.emit(status);
  }

  /** A restart, as JupyterLab tells of it: comms are disposed without a word. */
  restart(): void {
    this.become('restarting');
    this.comms.forEach(comm => (comm.isDisposed = true));
    this.become('starting');
    this.become('idle');
  }

  run(code: string): void {
    this.become('busy');
    this.iopubMessage.emit({
      header: { msg_type: 'execute_input' },
      content: { code }
    } as KernelMessage.IIOPubMessage);
    this.become('idle');
  }

  get connection(): Connection {
    return this as unknown as Connection;
  }
}
