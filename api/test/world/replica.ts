// Another API instance on the database and host of a test's API, with its own connections, feed of
// changes and memory.
import { newServices } from '../../src/control-plane/control-plane.ts';
import { openServer } from '../../src/control-plane/server.ts';
import { listen } from '../../src/http/app.ts';
import { Changes } from '../../src/store/database/changes.ts';
import { openDatabase } from '../../src/store/database/database.ts';
import type { TestApi } from './api.ts';

export interface Replica {
  url: string;
  close(): Promise<void>;
}

export async function startReplica(api: TestApi): Promise<Replica> {
  const { db } = openDatabase({
    url: api.databaseUrl,
    maxConnections: 4,
    statementTimeoutMs: 30_000,
    onIdleError: () => undefined,
  });
  const changes = new Changes(api.databaseUrl, (error) => api.context.log.warn({ err: error }));
  await changes.start();
  const app = await openServer(newServices({ ...api.context, db, changes }, api.signIn));
  const { port } = await listen(app, '127.0.0.1', 0);
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      app.server.closeAllConnections();
      await app.close();
      await changes.close();
      await db.destroy();
    },
  };
}
