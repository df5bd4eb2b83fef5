/**
 * Which notebook is looked at, and the model of its kernel.
 *
 * There is one model for a kernel, however many notebooks use it.
 */

import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';
import { type ISignal, Signal } from '@lumino/signaling';
import { type Client, type Connection, KernelModel } from './model';

export class Follower {
  constructor(
    private _tracker: INotebookTracker,
    private _client: Client
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

  get model(): KernelModel | null {
    return this._model;
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
    // Of the connections of one kernel, only the first gets its comms.
    const first =
      kernel && !kernel.handleComms
        ? kernelOf(
            this._tracker.find(panel => {
              const other = kernelOf(panel);
              return other?.id === kernel.id && other.handleComms;
            })
          )
        : null;
    this._model = kernel && this._modelOf(first ?? kernel);
    this._changed.emit();
  }

  private _modelOf(kernel: Connection): KernelModel {
    const known = this._models.get(kernel.id);
    if (known && !known.kernel.isDisposed) {
      return known;
    }
    known?.dispose();
    const model = new KernelModel(kernel, this._client);
    this._models.set(kernel.id, model);
    kernel.disposed.connect(() => {
      model.dispose();
      if (this._models.get(kernel.id) === model) {
        this._models.delete(kernel.id);
      }
    });
    return model;
  }

  private _notebook: NotebookPanel | null = null;
  private _model: KernelModel | null = null;
  private _models = new Map<string, KernelModel>();
  private _changed = new Signal<this, void>(this);
}

function kernelOf(panel: NotebookPanel | null | undefined): Kernel.IKernelConnection | null {
  return panel?.sessionContext.session?.kernel ?? null;
}

/** The name of this page, which outlives a reload. */
export function pageClient(storage: Storage): Client {
  const key = 'perspex:client';
  return {
    get id() {
      return storage.getItem(key) ?? this.renew();
    },
    renew() {
      const id = UUID.uuid4();
      storage.setItem(key, id);
      return id;
    }
  };
}
