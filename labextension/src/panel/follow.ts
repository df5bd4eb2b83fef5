/**
 * Which notebook is in front, and the connection to its kernel.
 *
 * A kernel has one connection, however many notebooks use it.
 */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';
import { Connection } from '../model/connection';
import type { IClient, IKernel } from '../model/kernel';

/** What the panel follows: a notebook, by its name, and its kernel. */
export interface IFollower {
  readonly changed: ISignal<unknown, void>;
  readonly name: string;
  readonly connection: Connection | null;
}

export class Follower implements IFollower {
  constructor(
    private readonly _tracker: INotebookTracker,
    private readonly _client: IClient
  ) {
    _tracker.currentChanged.connect(this._onNotebook, this);
    this._onNotebook();
  }

  /** Another notebook or another kernel. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get notebook(): NotebookPanel | null {
    return this._notebook;
  }

  get name(): string {
    return this._notebook?.title.label ?? '';
  }

  get connection(): Connection | null {
    return this._connection;
  }

  private _onNotebook(): void {
    const before = this._notebook;
    const now = this._tracker.currentWidget;
    if (before && !before.isDisposed) {
      before.sessionContext.kernelChanged.disconnect(this._onKernel, this);
    }
    this._notebook = now;
    now?.sessionContext.kernelChanged.connect(this._onKernel, this);
    this._onKernel();
  }

  private _onKernel(): void {
    const kernel = kernelOf(this._notebook);
    // JupyterLab delivers the comms of a kernel to the first of its connections only.
    const first =
      kernel && !kernel.handleComms
        ? kernelOf(
            this._tracker.find(panel => {
              const other = kernelOf(panel);
              return other?.id === kernel.id && other.handleComms;
            })
          )
        : null;
    this._connection = kernel && this._connectionOf(first ?? kernel);
    this._changed.emit();
  }

  private _connectionOf(kernel: IKernel): Connection {
    const known = this._connections.get(kernel.id);
    if (known && !known.kernel.isDisposed) {
      return known;
    }
    known?.dispose();
    const connection = new Connection(kernel, this._client);
    this._connections.set(kernel.id, connection);
    kernel.disposed.connect(() => {
      connection.dispose();
      if (this._connections.get(kernel.id) === connection) {
        this._connections.delete(kernel.id);
      }
    });
    return connection;
  }

  private _notebook: NotebookPanel | null = null;
  private _connection: Connection | null = null;
  private readonly _connections = new Map<string, Connection>();
  private readonly _changed = new Signal<this, void>(this);
}

function kernelOf(panel: NotebookPanel | null | undefined): Kernel.IKernelConnection | null {
  return panel?.sessionContext.session?.kernel ?? null;
}

/** The name of this page, which outlives a reload. */
export function pageClient(storage: Storage): IClient {
  const key = 'perspex:client';
  const renew = () => {
    const id = UUID.uuid4();
    storage.setItem(key, id);
    return id;
  };
  return {
    get id() {
      return storage.getItem(key) ?? renew();
    },
    renew
  };
}
