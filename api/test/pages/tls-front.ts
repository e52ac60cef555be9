// TLS in front of a server on loopback, as an operator's proxy terminates it. Browsers need a flag
// to accept its certificate.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';

export interface TlsFront {
  /** URL with the address and port. */
  url: string;
  close(): void;
}

export async function startTlsFront(port: number): Promise<TlsFront> {
  const server = createServer(await makeCertificate(), (socket) => {
    const behind = connect({ port, host: '127.0.0.1' });
    for (const [end, other] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      end.on('error', () => undefined);
      end.once('close', () => other.destroy());
    }
    socket.pipe(behind).pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => void server.close(),
  };
}

export async function makeCertificate(): Promise<{ key: Buffer; cert: Buffer }> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-tls-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  try {
    const request = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
    ];
    await promisify(execFile)('openssl', [...request, '-subj', '/CN=localhost', '-keyout', key, '-out', cert]);
    return { key: await readFile(key), cert: await readFile(cert) };
  } finally {
    await rm(folder, { recursive: true });
  }
}
