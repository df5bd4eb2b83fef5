/**
 * *Devices*: which part of an array lies where, what devices send each other, and the processes of a
 * cluster.
 */

import type { EngineRow, ExchangeRow, PlacementRow } from '../contract';
import type { ISession } from '../model/session';
import { deviceMap, partList, summary } from '../views/devices/map';
import { button, el, replace, said } from '../views/dom';
import { trans } from '../views/trans';
import { count, duration, size } from '../views/units';
import { cellBar, legend, PARTS } from './cellbar';
import { Rows } from './rows';
import { empty, forgottenNote, heads, type ITab, type ITabPage, percent, placeLink } from './tab';

export class DevicesTab implements ITab {
  readonly name = 'devices';
  readonly label = trans.__('Devices');
  readonly topics = ['devices', 'placements', 'exchanges', 'engines'] as const;
  readonly node: HTMLElement;

  constructor(private readonly _page: ITabPage) {
    this._rows = new Rows(this._arrays, this._more, row => this._array(row));
    this.node = el(
      'div',
      { class: 'pspx-stack' },
      this._total,
      this._map,
      this._arrays,
      this._more,
      this._note,
      this._exchanges,
      this._engines
    );
  }

  show(session: ISession): void {
    if (session !== this._session) {
      this._session = session;
      this._chosen = null;
      this._drawn = [];
    }
    const { devices, placements, exchanges, engines } = session.tables;
    const places = placements.inOrder();
    const all = devices.inOrder();
    const chosen = places.find(row => row.id === this._chosen) ?? places[0] ?? null;
    const tables = [all, places, exchanges.inOrder(), engines.inOrder(), chosen];
    if (tables.every((table, i) => table === this._drawn[i]) && devices.known) {
      return;
    }
    this._drawn = tables;
    this._chosen = chosen?.id ?? null;
    const held = all.reduce((sum, row) => sum + row.bytes, 0);
    const devicesText = trans._n('%2 device', '%2 devices', all.length, count(all.length));
    replace(
      this._total,
      all.length
        ? [el('strong', null, devicesText), ` ${trans.__('hold %1 of arrays', size(held))}`]
        : empty(devices, trans.__('The kernel has not used a device yet.'))
    );
    replace(
      this._map,
      chosen && el('h2', null, said(chosen.owner, 60), ' ', said(chosen.what, 60)),
      all.length > 0 && deviceMap(chosen, all),
      chosen && partList(chosen, all)
    );
    this._rows.update(places);
    for (const item of this._arrays.querySelectorAll('[data-array]')) {
      const isChosen = item.getAttribute('data-array') === this._chosen;
      item.setAttribute('aria-pressed', String(isChosen));
    }
    replace(
      this._note,
      places.length
        ? forgottenNote(placements.forgotten)
        : all.length > 0 &&
            empty(placements, trans.__('No named array lies on more than one device.'))
    );
    replace(this._exchanges, this._communication(exchanges.inOrder()));
    replace(this._engines, processes(engines.inOrder()));
  }

  private _array(row: PlacementRow): HTMLElement {
    const choose = () => {
      this._chosen = row.id;
      if (this._session) {
        this.show(this._session);
      }
    };
    return el(
      'div',
      { role: 'listitem' },
      button(
        'pspx-item',
        choose,
        el('span', { class: 'pspx-code pspx-ellipsis' }, said(row.owner, 60)),
        { 'data-array': row.id, 'aria-pressed': 'false', title: summary(row, row.devices.length) },
        el('span', { class: 'pspx-muted pspx-ellipsis' }, said(row.spec, 60)),
        el('span', { class: 'pspx-number' }, size(row.bytes))
      )
    );
  }

  private _communication(rows: readonly ExchangeRow[]): (HTMLElement | false)[] {
    const most = rows.reduce((max, row) => Math.max(max, row.sent), 1);
    const sorted = [...rows].sort((a, b) => b.sent - a.sent || a.order - b.order);
    const line = (row: ExchangeRow) =>
      el(
        'tr',
        null,
        el(
          'th',
          { scope: 'row', class: 'pspx-left' },
          placeLink(row.at, this._page) ?? said(row.name, 40)
        ),
        el(
          'td',
          { class: 'pspx-left' },
          el('span', { class: 'pspx-code' }, row.collective),
          el('div', { class: 'pspx-muted pspx-small' }, said(row.name, 40), ` · ${among(row)}`)
        ),
        el(
          'td',
          null,
          size(row.sent),
          el(
            'span',
            { class: 'pspx-share', 'aria-hidden': 'true' },
            el('span', { class: 'pspx-share-own', style: `width:${percent(row.sent, most)}` })
          )
        ),
        el('td', null, share(row.share))
      );
    const titles = heads(
      trans.__('line'),
      trans.__('collective'),
      trans.__('sent'),
      trans.__('share')
    );
    titles.querySelectorAll('th')[1]?.classList.add('pspx-left');
    return [
      rows.length > 0 && el('h2', null, trans.__('Communication')),
      rows.length > 0 &&
        el(
          'table',
          { class: 'pspx-table pspx-wide' },
          el(
            'caption',
            null,
            trans.__(
              'What each device sends in one run of the program, by line. The share is its estimated part of the work, or of the time once %cost has measured the devices.'
            )
          ),
          titles,
          el('tbody', null, sorted.slice(0, MOST).map(line))
        )
    ];
  }

  private readonly _total = el('div', { class: 'pspx-total' });
  private readonly _map = el('div');
  private readonly _arrays = el('div', {
    role: 'list',
    class: 'pspx-list',
    'aria-label': trans.__('Arrays over several devices, the largest first')
  });
  private readonly _more = el('div');
  private readonly _note = el('div');
  private readonly _exchanges = el('div');
  private readonly _engines = el('div');
  private readonly _rows: Rows<PlacementRow>;
  private _session: ISession | null = null;
  private _chosen: string | null = null;
  private _drawn: readonly unknown[] = [];
}

/** Lines of the table of communication that are drawn. */
const MOST = 100;

function among(row: ExchangeRow): string {
  const text = trans.__('%1 devices', count(row.group));
  return row.times === 1 ? text : trans.__('%1, %2 times', text, count(row.times));
}

function share(part: number): string {
  const percents = 100 * part;
  return percents > 0 && percents < 1 ? '<1%' : `${Math.round(percents)}%`;
}

/** The processes of a cluster, with their last cell on one axis of time. */
function processes(rows: readonly EngineRow[]): (HTMLElement | false)[] {
  const ran = rows.filter(row => row.ended !== null);
  const whole = ran.reduce((max, row) => Math.max(max, row.ended ?? 0), 0);
  const ends = ran.map(row => row.ended ?? 0);
  const skew = ends.length > 1 ? Math.max(...ends) - Math.min(...ends) : 0;
  const entry = (row: EngineRow) =>
    el(
      'div',
      { class: 'pspx-entry', role: 'listitem' },
      el(
        'div',
        { class: 'pspx-entry-head' },
        el(
          'span',
          { class: 'pspx-nowrap', title: trans.__('pid %1', row.pid) },
          trans.__('process %1', row.process)
        ),
        !row.alive && el('span', { class: 'pspx-error' }, trans.__('died')),
        el(
          'span',
          { class: 'pspx-number' },
          row.bytes === null
            ? size(row.memory)
            : trans.__('%1, %2 of arrays', size(row.memory), size(row.bytes))
        )
      ),
      row.ended !== null &&
        el(
          'div',
          { class: 'pspx-lane' },
          el(
            'span',
            { class: 'pspx-lane-track' },
            el(
              'span',
              {
                class: 'pspx-lane-bar',
                style: `margin-left:${percent(row.began ?? 0, whole)};width:${percent(row.wall, whole)}`
              },
              cellBar({ ...row, after: null })
            )
          ),
          el('span', { class: 'pspx-muted pspx-small' }, duration(row.wall))
        )
    );
  const last = ran.reduce((max, row) => Math.max(max, row.count), 0);
  const used = PARTS.filter(part => ran.some(row => row[part] > 0));
  return [
    rows.length > 0 && el('h2', null, trans.__('Processes')),
    ran.length > 1 &&
      el(
        'p',
        { class: 'pspx-muted' },
        trans.__('%1: the last process ended it %2 after the first.', `In[${last}]`, duration(skew))
      ),
    used.length > 0 && legend(used),
    rows.length > 0 &&
      el(
        'div',
        { role: 'list', 'aria-label': trans.__('Processes of the cluster') },
        rows.map(entry)
      )
  ];
}
