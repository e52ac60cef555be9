// The guest gateway: parses what guests send, without privileges, in the place of the host daemon.
// Started by launch.ts with the path of its socket; ends with the host daemon.
import { createServer } from 'node:net';
import { LISTEN_BACKLOG } from '@berth/protocol/http/backlog.ts';
import { GatewayServer } from './serve.ts';

const [socketPath = ''] = process.argv.slice(2);
const gateway = new GatewayServer();
const server = createServer({ allowHalfOpen: true }, (connection) => void gateway.serve(connection));
server.listen({ path: socketPath, backlog: LISTEN_BACKLOG }, () => process.stdout.write('ready\n'));
