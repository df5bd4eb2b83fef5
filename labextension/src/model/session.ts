/**
 * What the panel knows of one session of a kernel: its tables, and the documents of its programs.
 *
 * A restarted kernel is another session, with other rows under the same ids. So whatever a view
 * remembers by ids, it remembers for one session.
 */

import type { Changes, Compiled, Program, Topic } from '../contract';
import type { Answer, Question } from './link';
import { Table, type Tables } from './table';

/** What views see of a session. */
export interface ISession {
  readonly tables: Tables;
  /** Whether the kernel measures device times by line. */
  readonly isProfiling: boolean;
  /** Whether no cell is running. */
  readonly isIdle: boolean;
  /** Whether the kernel has begun another session. */
  readonly isOver: boolean;
  ask(question: Question): Promise<Answer>;
  /** The document of a program, without the parts of `compiled`; rejected with the reason. */
  program(id: string): Promise<Program>;
  /** What a program was compiled to, which takes longer. */
  compiled(id: string): Promise<Compiled>;
  /** Turn device times by line on or off. */
  profile(on: boolean): Promise<Answer>;
}

/** How a session reaches its kernel, and whom it tells about changes. */
export interface ISessionHost {
  isIdle(): boolean;
  ask(question: Question): Promise<Answer>;
  /** A topic has changed, or, with `null`, something else. */
  changed(topic: Topic | null): void;
}

/** How many documents of programs are kept; one of 10,000 equations has some megabytes. */
const DOCUMENTS = 4;

export class Session implements ISession {
  readonly tables = {
    programs: new Table(),
    cells: new Table(),
    buffers: new Table(),
    memory: new Table(),
    keys: new Table(),
    lines: new Table(),
    devices: new Table(),
    placements: new Table(),
    exchanges: new Table(),
    engines: new Table(),
    badges: new Table()
  } as Tables & Record<Topic, Table>;

  /** The name that the kernel gave to the session, once it has. */
  name: string | null = null;
  isProfiling = false;
  isOver = false;

  constructor(private readonly _host: ISessionHost) {}

  get isIdle(): boolean {
    return this._host.isIdle();
  }

  /** Whether rows of one of these topics may be missing. */
  isBehind(topics: readonly Topic[]): boolean {
    return topics.some(topic => this.tables[topic].behind);
  }

  /** Messages are missing. */
  missed(): void {
    Object.values<Table>(this.tables).forEach(table => table.missed());
  }

  apply(changes: Changes): void {
    for (const change of changes.topics) {
      // A later kernel may have topics that this page does not know.
      const table: Table | undefined = this.tables[change.topic];
      if (table?.apply(change)) {
        this._host.changed(change.topic);
      }
    }
  }

  ask(question: Question): Promise<Answer> {
    return this._host.ask(question);
  }

  program(id: string): Promise<Program> {
    return this._document('program', id, this._programs);
  }

  compiled(id: string): Promise<Compiled> {
    return this._document('compiled', id, this._compiled);
  }

  async profile(on: boolean): Promise<Answer> {
    const answer = await this.ask({ what: 'profile', on });
    if (answer.ok) {
      this.isProfiling = on;
      this._host.changed(null);
    }
    return answer;
  }

  private async _document<What extends 'program' | 'compiled'>(
    what: What,
    id: string,
    documents: Map<string, NonNullable<Answer[What]>>
  ): Promise<NonNullable<Answer[What]>> {
    const known = documents.get(id);
    if (known) {
      return known;
    }
    const answer = await this.ask({ what, id });
    const made = answer[what];
    if (!answer.ok || !made) {
      throw new Error(answer.text);
    }
    documents.set(id, made);
    for (const old of [...documents.keys()].slice(0, -DOCUMENTS)) {
      documents.delete(old);
    }
    return made;
  }

  private readonly _programs = new Map<string, Program>();
  private readonly _compiled = new Map<string, Compiled>();
}
