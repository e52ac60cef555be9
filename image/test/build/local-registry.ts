// An npm registry of one package on 127.0.0.1, for tests of agents. Its own integrity always fits
// its archive, as that of a registry that serves other content.
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { TAR_END, tarEntries, type TarEntry } from '@berth/os/tar.ts';
import type { AgentPackage } from '../../src/build/agents.ts';

const NAME = 'berth-test-agent';
const VERSION = '1.0.0';

export interface LocalRegistry {
  url: string;
  /** Requested paths. */
  requests: string[];
  /** Served archive. */
  archive: Buffer;
  /** Zeros after the archive: as many as the client takes. */
  isEndless: boolean;
  /** Stops the archive after its first half. */
  stalls: boolean;
  close(): Promise<void>;
}

export async function archiveOf(entries: readonly TarEntry[]): Promise<Buffer> {
  return gzipSync(Buffer.concat([await buffer(Readable.from(tarEntries(entries, 0))), TAR_END]));
}

export const fileEntry = (path: string, content: string | Buffer): TarEntry => ({
  ...{ path: `package/${path}`, type: 'file', mode: 0o755 },
  content: Buffer.from(content),
});

/** Pins an archive, of which the image gets these files. */
export function pinned(archive: Buffer, files: string[] = ['bin/agent']): AgentPackage {
  return {
    ...{ id: 'agent_one', name: 'agent', version: VERSION, package: `${NAME}@${VERSION}`, needsMib: 1 },
    ...{ integrity: integrityOf(archive), archiveBytes: archive.length, root: 'package', files, program: 'bin/agent' },
  };
}

const integrityOf = (archive: Buffer): string => `sha512-${createHash('sha512').update(archive).digest('base64')}`;

export async function serveLocalRegistry(archive: Buffer): Promise<LocalRegistry> {
  const registry: LocalRegistry = {
    ...{ url: '', requests: [], archive, isEndless: false, stalls: false },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server = createServer(({ url = '' }, response) => {
    registry.requests.push(url);
    if (url === `/${NAME}`) {
      const dist = { tarball: `${registry.url}/${NAME}.tgz`, integrity: integrityOf(registry.archive) };
      const versions = { [VERSION]: { name: NAME, version: VERSION, dist } };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ name: NAME, 'dist-tags': { latest: VERSION }, versions }));
    } else if (registry.stalls) {
      response.write(registry.archive.subarray(0, registry.archive.length / 2));
    } else {
      Readable.from(contentOf(registry)).pipe(response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  registry.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return registry;
}

function* contentOf({ archive, isEndless }: LocalRegistry): Generator<Buffer> {
  yield archive;
  for (const zeros = Buffer.alloc(isEndless ? 1 << 20 : 0); zeros.length > 0;) yield zeros;
}
