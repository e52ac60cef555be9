// A test process that serves HTTP, a DNS zone and UDP on all addresses of its network namespace.
// Reports arrivals over its IPC channel. Started by `namespace-server.ts`; exits with its parent.
import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { answerOf } from './dns/dns-zone.ts';
import type { ServerCounts, ServerOptions } from './namespace-server.ts';

const options = JSON.parse(process.argv[2] ?? '') as ServerOptions;
const datagrams: string[] = [];
const listening: Promise<void>[] = [];
const address = options.ipv6 ? '::' : '0.0.0.0';

for (const port of options.httpPorts) {
  const server = createHttpServer((request, response) => {
    response.end(JSON.stringify({ name: options.name, from: request.socket.remoteAddress?.replace('::ffff:', '') }));
  });
  listening.push(new Promise((resolve) => server.listen(port, address, resolve)));
}
const udp = createSocket(options.ipv6 ? 'udp6' : 'udp4', (message) => datagrams.push(message.toString('latin1')));
listening.push(new Promise((resolve) => udp.bind(options.udpPort, address, resolve)));
if (options.dnsAddress !== null) serveDns(options.dnsAddress);

function serveDns(dnsAddress: string): void {
  const dns = createSocket('udp4', (query, from) => dns.send(answerOf(query, 'udp'), from.port, from.address));
  listening.push(new Promise((resolve) => dns.bind(53, dnsAddress, resolve)));
  const tcp = createTcpServer((connection) => {
    connection.on('error', () => connection.destroy());
    connection.on('data', (frame) => {
      const answer = answerOf(frame.subarray(2), 'tcp');
      const length = Buffer.alloc(2);
      length.writeUInt16BE(answer.length, 0);
      connection.end(Buffer.concat([length, answer]));
    });
  });
  listening.push(new Promise((resolve) => tcp.listen(53, dnsAddress, resolve)));
}

/** IPv4 packets received in this namespace, including dropped ones. */
function packetsReceived(): number {
  const [names, values] = readFileSync('/proc/self/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Ip:'))
    .map((line) => line.split(' '));
  return Number(values?.[names?.indexOf('InReceives') ?? -1]);
}

process.on('message', () => process.send?.({ datagrams, packetsReceived: packetsReceived() } satisfies ServerCounts));
process.on('disconnect', () => process.exit(0));
await Promise.all(listening);
process.send?.('ready');
