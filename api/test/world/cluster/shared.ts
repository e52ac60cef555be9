// The PostgreSQL server shared by the test files of a run. Prints its environment for database.ts
// as a line of JSON, and serves until stdin closes.
import { once } from 'node:events';
import { startCluster } from './template.ts';

/** For several concurrent files, each with up to a few hundred connections. */
const CONNECTIONS = 600;

// No test stops this server: commits need not be flushed.
const server = await startCluster({ max_connections: String(CONNECTIONS), synchronous_commit: 'off' });
console.log(JSON.stringify({ BERTH_TEST_CLUSTER: server.folder }));
process.stdin.resume();
await once(process.stdin, 'end');
await server.remove();
