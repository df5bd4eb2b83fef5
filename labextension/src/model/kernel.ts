/** The part of a kernel that the panel needs; `IKernelConnection` of JupyterLab has all of it. */

import type { Kernel, KernelMessage } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';

export interface IComm {
  readonly isDisposed: boolean;
  /** Replaced by whoever listens. */
  onMsg(message: { content: { data: unknown } }): unknown;
  onClose(message: unknown): unknown;
  open(data: unknown): unknown;
  send(data: unknown): unknown;
  close(): unknown;
}

export interface IKernel {
  readonly id: string;
  readonly status: KernelMessage.Status;
  readonly connectionStatus: Kernel.ConnectionStatus;
  readonly handleComms: boolean;
  readonly isDisposed: boolean;
  readonly info: Promise<{ language_info: { name: string } }>;
  createComm(target: string): IComm;
  readonly statusChanged: ISignal<unknown, KernelMessage.Status>;
  readonly connectionStatusChanged: ISignal<unknown, Kernel.ConnectionStatus>;
  readonly iopubMessage: ISignal<unknown, { header: { msg_type: string }; content: unknown }>;
  readonly disposed: ISignal<unknown, void>;
}

/** The name of this page, by which a kernel recognizes it after a reload. */
export interface IClient {
  readonly id: string;
  renew(): string;
}
