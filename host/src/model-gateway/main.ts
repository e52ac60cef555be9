// The model gateway: parses the guests' requests to models and adds the keys, without privileges.
// Started by ../gateway/launch.ts with the path of its socket; ends with the host daemon.
import { createServer } from 'node:net';
import { LISTEN_BACKLOG } from '@berth/protocol/http/backlog.ts';
import { ModelGatewayServer } from './serve.ts';

// The text of an unexpected error could hold a part of a request.
process.on('uncaughtException', ({ name }) => {
  process.stderr.write(`unexpected ${name}\n`);
  process.exit(70);
});
const [socketPath = ''] = process.argv.slice(2);
const gateway = new ModelGatewayServer();
const server = createServer((connection) => void gateway.serve(connection));
server.listen({ path: socketPath, backlog: LISTEN_BACKLOG }, () => process.stdout.write('ready\n'));
