// A Debian archive of small packages on 127.0.0.1, for tests: real packages, real indices, served
// by this process. Unsigned.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { ArchiveSource } from '../src/build/apt.ts';
import type { ManifestPackage } from '../src/build/manifest.ts';

const run = promisify(execFile);

export interface LocalArchive {
  source: ArchiveSource;
  /** Requested paths. */
  requests: string[];
  /** Creates a package in the pool and, unless `listed` is false, in the index. */
  add(name: string, version: string, options?: { content?: string; listed?: boolean }): Promise<ManifestPackage>;
  /** Removes a version from the index and the pool, as archives do. */
  remove(each: ManifestPackage): Promise<void>;
  close(): Promise<void>;
}

const sha256Of = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

/**
 * Serves `folder`, which must be empty. Both archives use the names of suite `trixie`; packages are
 * in the main one.
 */
export async function serveLocalArchive(folder: string): Promise<LocalArchive> {
  const files = join(folder, 'served');
  const stanzas = new Map<string, string>();
  const requests: string[] = [];

  async function writeIndices(): Promise<void> {
    const suites = ['debian/dists/trixie', 'debian/dists/trixie-updates', 'security/dists/trixie-security'];
    for (const suite of suites) {
      const packages = suite.endsWith('/trixie') ? [...stanzas.values()].join('\n') : '';
      const index = 'main/binary-amd64/Packages';
      await mkdir(dirname(join(files, suite, index)), { recursive: true });
      await writeFile(join(files, suite, index), packages);
      const name = suite.slice(suite.lastIndexOf('/') + 1);
      const release = [
        `Origin: Debian`,
        `Suite: ${name}`,
        `Codename: ${name}`,
        `Date: ${new Date().toUTCString()}`,
        'Architectures: amd64',
        'Components: main',
        `SHA256:\n ${sha256Of(packages)} ${Buffer.byteLength(packages)} ${index}\n`,
      ].join('\n');
      await writeFile(join(files, suite, 'Release'), release);
    }
  }

  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://archive').pathname);
    requests.push(path);
    readFile(join(files, path)).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  await writeIndices();
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    source: { debian: `${address}/debian/`, security: `${address}/security/`, keyring: 'trusted' },
    requests,
    async add(name, version, options = {}) {
      const tree = join(folder, 'tree');
      await rm(tree, { recursive: true, force: true });
      await mkdir(join(tree, 'DEBIAN'), { recursive: true });
      const control =
        `Package: ${name}\nVersion: ${version}\nArchitecture: amd64\n` +
        `Maintainer: Test <test@localhost>\nDescription: ${options.content ?? 'test'}\n`;
      await writeFile(join(tree, 'DEBIAN/control'), control);
      const poolPath = `pool/main/${name[0]}/${name}/${name}_${version.replace(/^\d+:/, '')}_amd64.deb`;
      const path = join(files, 'debian', poolPath);
      await mkdir(dirname(path), { recursive: true });
      await run('dpkg-deb', ['--root-owner-group', '--build', tree, path]);
      const bytes = await readFile(path);
      const sha256 = sha256Of(bytes);
      if (options.listed !== false) {
        stanzas.set(
          `${name}=${version}`,
          `${control}Filename: ${poolPath}\nSize: ${bytes.length}\nSHA256: ${sha256}\n`,
        );
      }

      await writeIndices();
      return {
        name,
        version,
        architecture: 'amd64',
        archive: 'debian',
        poolPath,
        sizeBytes: bytes.length,
        sha256,
        uses: ['root'],
      };
    },
    async remove(each) {
      stanzas.delete(`${each.name}=${each.version}`);
      await rm(join(files, 'debian', each.poolPath));
      await writeIndices();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
