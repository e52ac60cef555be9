// The PostgreSQL server that the test files of a run share. Prints, as a line of JSON, the
// environment by which they find it (database.ts), and serves until its stdin ends.
import { once } from 'node:events';
import { startCluster } from './cluster-template.ts';

/** For several files at once, each with up to some hundred connections. */
const CONNECTIONS = 600;

// No test stops this server: commits need not reach its files first.
const server = await startCluster({ max_connections: String(CONNECTIONS), synchronous_commit: 'off' });
console.log(JSON.stringify({ BERTH_TEST_CLUSTER: server.folder }));
process.stdin.resume();
await once(process.stdin, 'end');
await server.remove();
