/** Draws device times in the notebook's cells while the kernel measures them. */

import type { LineRow } from '../contract';
import type { Connection } from '../model/connection';
import type { Follower } from './follow';
import { HeatMap } from './heat';

const NONE: readonly LineRow[] = [];

export function followHeat(follower: Follower): void {
  const heat = new HeatMap();
  let connection: Connection | null = null;
  let frame = 0;
  const draw = () => {
    frame = 0;
    const notebook = follower.notebook?.content;
    const session = connection?.session;
    const isOn = session?.isProfiling ?? false;
    connection?.look('heat', isOn ? ['lines'] : []);
    if (notebook && !notebook.isDisposed) {
      heat.show(notebook, session && isOn ? session.tables.lines.inOrder() : NONE);
    }
  };
  const schedule = () => {
    frame ||= requestAnimationFrame(draw);
  };
  const follow = () => {
    if (follower.connection !== connection) {
      connection?.changed.disconnect(schedule);
      connection = follower.connection;
      connection?.changed.connect(schedule);
    }
    schedule();
  };
  follower.changed.connect(follow);
  follow();
}
