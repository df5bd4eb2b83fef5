/** Rows and messages as the kernel makes them; `contract.test.ts` checks them by the schema. */

import type {
  BufferRow,
  CellRow,
  Changes,
  Compiled,
  DeviceRow,
  EngineRow,
  ExchangeRow,
  Hello,
  KeyRow,
  LineRow,
  MemoryRow,
  Program,
  Place,
  PlacementRow,
  ProgramRow,
  Row,
  Topic
} from '../src/contract';

export const hello = (over: Partial<Hello> = {}): Hello => ({
  type: 'hello',
  number: 0,
  version: 1,
  perspex: '0.1.0',
  jaxlib: '0.10.2',
  platform: 'cpu',
  session: 'one',
  profiling: false,
  ...over
});

export const place = (cell: string, line = 1): Place => ({
  text: `Cell In[1]:${line}`,
  cell,
  file: '',
  line
});

let orders = 0;

export const program = (id: string, over: Partial<ProgramRow> = {}): ProgramRow => ({
  row: 'program',
  id,
  order: ++orders,
  name: `function_${id}`,
  title: over.name ?? `function_${id}`,
  cell: '',
  library: false,
  used: 0,
  signature: 'f32[3]',
  at: place('a'),
  found: 'xla',
  trace: 0.001,
  lower: 0.002,
  compile: 0.03,
  byXla: 0.03,
  size: 12_000,
  equations: 7,
  pinned: false,
  miss: null,
  calls: null,
  device: null,
  roof: null,
  canShow: true,
  ...over
});

/** The document of `lambda x: sin(x) * 2` with a loop around it. */
export const document = (): Program & Compiled => ({
  name: 'f',
  signature: 'f32[3]',
  sources: [
    {
      name: 'Cell In[3]',
      cell: 'a',
      first: 4,
      lines: { text: 'def f(x):\n  return sin(x) * 2', folds: [[0, 1]], links: [null, [0, 1, 2]] }
    }
  ],
  equations: {
    primitive: ['scan', 'sin', 'mul'],
    outputs: [['a:f32[3]'], ['b:f32[3]'], ['c:f32[3]']],
    parent: [-1, 0, 0],
    inputs: [[], [], [1]],
    lines: ['', 'Cell In[3]:5'],
    at: [1, 1, 1],
    flops: [null, 3, 3],
    bytes: [96, 24, 24]
  },
  jaxpr: {
    text: '{ lambda\n  scan[\n    b = sin a\n    c = mul b\n  ] }',
    folds: [
      [0, 4],
      [1, 2]
    ],
    links: [null, 0, 1, 2, 0]
  },
  stablehlo: { text: '', folds: [], links: [] },
  hlo: { text: 'fusion', folds: [], links: [[1, 2]] },
  notes: []
});

export const cell = (id: string, over: Partial<CellRow> = {}): CellRow => ({
  row: 'cell',
  id,
  order: ++orders,
  cell: 'a',
  count: 1,
  status: 'ok',
  head: 'y = f(x)',
  wall: 0.1,
  trace: 0.01,
  lower: 0.01,
  compile: 0.05,
  device: 0.01,
  transfer: 0,
  python: 0.02,
  idle: 0,
  after: null,
  working: false,
  sources: { xla: 1 },
  bytes: {},
  ...over
});

export const buffer = (id: string, over: Partial<BufferRow> = {}): BufferRow => ({
  row: 'buffer',
  id,
  order: ++orders,
  owner: id,
  kind: 'variable',
  what: 'float32[1000]',
  bytes: 4000,
  device: 'cpu:0',
  cell: 'In[1]',
  also: '',
  canFree: true,
  ...over
});

export const memory = (id: string, bytes: number, over: Partial<MemoryRow> = {}): MemoryRow => ({
  row: 'memory',
  id,
  order: ++orders,
  time: 1e9 + orders,
  bytes,
  count: orders,
  ...over
});

export const key = (id: string, over: Partial<KeyRow> = {}): KeyRow => ({
  row: 'key',
  id,
  order: ++orders,
  parent: null,
  function: 'split',
  expression: 'random.split(key)',
  names: ['a', 'b'],
  at: place('a'),
  calls: 1,
  keys: 2,
  makes: true,
  traced: false,
  reusedKeys: 0,
  reused: [],
  ...over
});

export const line = (id: string, over: Partial<LineRow> = {}): LineRow => ({
  code: 'y = f(x)',
  row: 'line',
  id,
  order: ++orders,
  at: place('a'),
  seconds: 0.01,
  shared: 0,
  runs: 3,
  ...over
});

export const device = (id: number, over: Partial<DeviceRow> = {}): DeviceRow => ({
  row: 'device',
  id: `TFRT_CPU_${id}`,
  order: id,
  name: `cpu:${id}`,
  kind: 'cpu',
  process: 0,
  bytes: 4096,
  arrays: 1,
  used: null,
  peak: null,
  limit: null,
  piece: null,
  ...over
});

/** An array over four devices: two parts, each on two of them. */
export const placement = (owner: string, over: Partial<PlacementRow> = {}): PlacementRow => ({
  row: 'placement',
  id: owner,
  order: ++orders,
  owner,
  what: 'f32[8@x,4]',
  spec: "P('x', None)",
  cell: 'In[1]',
  bytes: 256,
  each: 64,
  copies: 2,
  axes: ['x', 'y'],
  sizes: [2, 2],
  devices: [0, 1, 2, 3].map(i => `TFRT_CPU_${i}`),
  parts: [0, 0, 1, 1],
  ranges: ['0:4, :', '4:8, :'],
  ...over
});

export const exchange = (id: string, over: Partial<ExchangeRow> = {}): ExchangeRow => ({
  row: 'exchange',
  id,
  order: ++orders,
  program: '1',
  name: 'layer',
  at: place('a', 6),
  collective: 'all-reduce',
  sent: 4096,
  times: 1,
  group: 4,
  share: 0.25,
  ...over
});

export const engine = (process: number, over: Partial<EngineRow> = {}): EngineRow => ({
  row: 'engine',
  id: String(process),
  order: process,
  process,
  pid: 100 + process,
  alive: true,
  memory: 1024 ** 2,
  bytes: 2048,
  count: 7,
  began: 0,
  ended: 0.5,
  wall: 0.5,
  trace: 0,
  lower: 0,
  compile: 0.3,
  device: 0.1,
  transfer: 0,
  python: 0.1,
  idle: 0,
  ...over
});

/** The rows of one topic, in place of all others or beside them. */
export const changes = (
  number: number,
  topic: Topic,
  put: Row[],
  over: { reset?: boolean; drop?: string[]; forgotten?: number } = {}
): Changes => ({
  type: 'changes',
  number,
  topics: [{ topic, reset: false, put, drop: [], forgotten: 0, ...over }]
});
