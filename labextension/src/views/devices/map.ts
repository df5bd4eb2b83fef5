/**
 * Devices as a map: one tile for each, in the order of an array's mesh, in the colour of the part of
 * the array that it holds. Devices of the same colour hold copies.
 */

import type { DeviceRow, PlacementRow } from '../../contract';
import { el, replace, said } from '../dom';
import { trans } from '../trans';
import { count, size } from '../units';

/** Tiles up to this number have texts; more are small squares. */
const WITH_TEXT = 64;
/** Of more devices, at most so many stand in a row if the mesh does not say. */
const ACROSS = 8;

/** What a map is drawn from: an array, or no array and all devices. */
export function deviceMap(
  placement: PlacementRow | null,
  devices: readonly DeviceRow[]
): HTMLElement {
  const rows = new Map(devices.map(row => [row.id, row]));
  const ids = placement ? placement.devices : devices.map(row => row.id);
  const most = devices.reduce((max, row) => Math.max(max, row.bytes), 1);
  const grid = gridOf(placement, ids.length);
  const isSmall = ids.length > WITH_TEXT;
  const tiles = ids.map((id, i) => tile(i, rows.get(id), id));
  const told = el('figcaption', { class: 'pspx-muted pspx-small pspx-broken' });
  const tell = (i: number | null) =>
    replace(told, i === null ? summary(placement, ids.length) : about(i));
  const pieces: HTMLElement[] = [];
  if (grid.across) {
    // Above the labels of the rows, where there are such, nothing stands.
    if (grid.down) {
      pieces.push(el('span'));
    }
    pieces.push(...grid.across.map(text => label(text, 'pspx-map-top')));
  }
  tiles.forEach((one, i) => {
    if (grid.down && i % grid.columns === 0) {
      pieces.push(label(grid.down[i / grid.columns], 'pspx-map-left'));
    }
    pieces.push(one);
  });
  const columns = `${grid.down ? 'max-content ' : ''}repeat(${grid.columns}, minmax(0, 1fr))`;
  const map = el(
    'div',
    {
      class: isSmall ? 'pspx-map pspx-map-small' : 'pspx-map',
      style: `grid-template-columns:${columns}`,
      role: 'img',
      'aria-label': summary(placement, ids.length),
      onpointermove: event => {
        const at = event.target instanceof Element && event.target.closest('[data-at]');
        tell(at ? Number(at.getAttribute('data-at')) : null);
      },
      onpointerleave: () => tell(null)
    },
    pieces
  );
  tell(null);
  return el('figure', { class: 'pspx-map-figure' }, map, told);

  function tile(i: number, row: DeviceRow | undefined, id: string): HTMLElement {
    const part = placement?.parts[i];
    const name = row?.name ?? id;
    const held = row ? row.bytes / most : 0;
    return el(
      'span',
      {
        class: 'pspx-tile',
        'data-at': i,
        'data-part': part,
        style: part === undefined ? null : `--pspx-hue:${hue(part, placement?.ranges.length ?? 1)}`
      },
      !isSmall && el('strong', null, name.slice(name.indexOf(':') + 1)),
      !isSmall && el('span', { class: 'pspx-tile-range' }, tileText(part, row)),
      !isSmall &&
        el('span', { class: 'pspx-tile-held', style: `width:${(100 * held).toFixed(1)}%` })
    );
  }

  function tileText(part: number | undefined, row: DeviceRow | undefined): string {
    if (part === undefined || !placement) {
      return size(row?.bytes);
    }
    // Along the axes that are cut; the others are whole everywhere.
    const ranges = (placement.ranges[part] ?? '').split(', ').filter(range => range !== ':');
    return ranges.join(', ') || ':';
  }

  /** What is known of one device. */
  function about(i: number): string {
    const row = rows.get(ids[i] ?? '');
    const part = placement?.parts[i];
    const others = ids.filter((_, j) => j !== i && placement?.parts[j] === part);
    const texts = [
      row?.name ?? ids[i] ?? '',
      row && row.process > 0 && trans.__('process %1', row.process),
      placement &&
        part !== undefined &&
        `[${placement.ranges[part] ?? ''}] ${size(placement.each)}`,
      placement && others.length > 0 && trans.__('also on %1', shortened(others)),
      row && trans.__('%1 in all', size(row.bytes)),
      row?.limit && trans.__('%1 of %2 in use', size(row.used), size(row.limit)),
      row?.peak && trans.__('at most %1 so far', size(row.peak)),
      row?.piece && trans.__('free in pieces of at most %1', size(row.piece))
    ];
    return texts.filter(Boolean).join(' · ');
  }

  function shortened(others: readonly string[]): string {
    const names = others.slice(0, 4).map(id => rows.get(id)?.name ?? id);
    return names.join(', ') + (others.length > 4 ? `, … (${count(others.length)})` : '');
  }
}

/** The map as a list, for those who read instead of look. */
export function partList(placement: PlacementRow, devices: readonly DeviceRow[]): HTMLElement {
  const names = new Map(devices.map(row => [row.id, row.name]));
  const holders = placement.ranges.map((_, part) =>
    placement.devices.filter((_, i) => placement.parts[i] === part).map(id => names.get(id) ?? id)
  );
  return el(
    'details',
    null,
    el('summary', null, trans.__('Parts')),
    el(
      'ul',
      { class: 'pspx-parts' },
      placement.ranges.slice(0, WITH_TEXT).map((range, part) =>
        el(
          'li',
          null,
          el('span', {
            class: 'pspx-swatch pspx-tile-swatch',
            style: `--pspx-hue:${hue(part, placement.ranges.length)}`
          }),
          el('span', { class: 'pspx-code' }, `[${range}]`),
          ' ',
          said(holders[part]?.join(', ') ?? '', 80)
        )
      )
    )
  );
}

/** What an array is cut into, in one line. */
export function summary(placement: PlacementRow | null, devices: number): string {
  if (!placement) {
    return trans._n('%2 device', '%2 devices', devices, count(devices));
  }
  const parts = placement.ranges.length;
  const each = size(placement.each);
  if (parts === 1) {
    return trans.__('Whole on each of %1 devices, %2 each', count(devices), each);
  }
  return placement.copies > 1
    ? trans.__('%1 parts of %2, each on %3 devices', count(parts), each, count(placement.copies))
    : trans.__('%1 parts of %2, one on each device', count(parts), each);
}

type Grid = { columns: number; across: string[] | null; down: string[] | null };

/** The last axis of the mesh across, the others down. */
function gridOf(placement: PlacementRow | null, n: number): Grid {
  const sizes = placement?.sizes ?? [];
  const axes = placement?.axes ?? [];
  if (!sizes.length) {
    return { columns: Math.max(1, Math.min(n, ACROSS)), across: null, down: null };
  }
  // Of axes of size one nothing is to be seen.
  const shown = sizes.map((size, i) => ({ size, axis: axes[i] ?? '' })).filter(a => a.size > 1);
  const last = shown.pop() ?? { size: 1, axis: axes.at(-1) ?? '' };
  const across = Array.from({ length: last.size }, (_, i) => `${last.axis} ${i}`);
  let down = [''];
  for (const { size, axis } of shown) {
    down = down.flatMap(text => Array.from({ length: size }, (_, i) => `${text} ${axis} ${i}`));
  }
  return {
    columns: last.size,
    across: last.size > WITH_TEXT / 2 ? null : across,
    down: shown.length ? down.map(text => text.trim()) : null
  };
}

function label(text: string | undefined, look: string): HTMLElement {
  return el('span', { class: `pspx-map-label ${look}` }, said(text ?? '', 12));
}

/** Colours as different as so many can be; blue is the first. */
function hue(part: number, parts: number): string {
  return String(Math.round((210 + (360 * part) / Math.max(1, parts)) % 360));
}
