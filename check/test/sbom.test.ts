// The bill of materials is complete and consistent. Its schema was checked once by hand with the
// official one of CycloneDX 1.5.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Manifest } from '../../image/src/build/manifest.ts';
import { billOfMaterials, lockedHashes, type BillOfMaterials } from '../source/bill-of-materials.ts';

const SHA256 = 'a'.repeat(64);
const MANIFEST: Manifest = {
  format: 1,
  suite: 'trixie',
  architecture: 'amd64',
  recipeHash: SHA256,
  node: { version: '24.0.0', sha256: SHA256 },
  npm: { version: '12.0.0', sha256: SHA256 },
  agents: [{ id: 'agent_one', package: '@a/b@1.0.0', version: '1.0', integrity: `sha512-${'A'.repeat(86)}==` }],
  packages: [
    { name: 'g++', version: '4:14.2.0-1', uses: ['root'] as const },
    { name: 'e2fsprogs', version: '1.47.2-3', uses: ['tools'] as const },
  ].map(({ uses, ...each }) => ({
    ...each,
    uses: [...uses],
    architecture: 'amd64',
    archive: 'debian',
    poolPath: 'pool/main/x.deb',
    sizeBytes: 1,
    sha256: SHA256,
  })),
};

function sbom(...args: string[]): BillOfMaterials {
  const command = [join(import.meta.dirname, '../sbom.ts'), ...args];
  const text = execFileSync(process.execPath, command, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  return billOfMaterials.parse(JSON.parse(text));
}

function assertConsistent(bom: BillOfMaterials): void {
  assert.equal(bom.specVersion, '1.5');
  const refs = bom.components.map((each) => each['bom-ref']);
  assert.equal(new Set(refs).size, refs.length, 'each bom-ref is unique');
  const known = new Set([...refs, bom.metadata.component['bom-ref']]);
  assert.equal(new Set(bom.dependencies.map(({ ref }) => ref)).size, bom.dependencies.length);
  for (const { ref, dependsOn } of bom.dependencies) {
    assert.ok(known.has(ref), ref);
    assert.deepEqual(
      dependsOn.filter((other) => !known.has(other)),
      [],
      ref,
    );
  }
  const lengths = { 'SHA-256': 64, 'SHA-512': 128 };
  for (const { hashes = [], purl = 'pkg:' } of bom.components) {
    assert.match(purl, /^pkg:/);
    for (const { alg, content } of hashes) assert.match(content, new RegExp(`^[0-9a-f]{${lengths[alg]}}$`));
  }
}

test('the bill of materials lists each package of the lock file with its hash', async () => {
  const bom = sbom();
  assertConsistent(bom);
  const listed = new Map(bom.components.map((each) => [each['bom-ref'], each.hashes?.[0]?.content]));
  const hashes = lockedHashes(JSON.parse(await readFile('package-lock.json', 'utf8')));
  assert.ok(hashes.size > 300, `the lock file has ${hashes.size} packages`);
  for (const [ref, hash] of hashes) assert.equal(listed.get(ref), hash, ref);
});

test('the bill of materials names PostgreSQL and Node.js, which npm packages carry', () => {
  const purls = sbom().components.map(({ purl }) => purl);
  for (const name of ['postgresql', 'node'])
    assert.equal(purls.filter((purl) => purl?.startsWith(`pkg:generic/${name}@`)).length, 1, name);
});

test('the bill of materials lists the Debian packages and coding agents of a guest image', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-sbom-'));
  context.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'manifest.json');
  await writeFile(file, JSON.stringify(MANIFEST));
  const bom = sbom('--manifest', file);
  assertConsistent(bom);
  const compiler = 'pkg:deb/debian/g%2B%2B@4%3A14.2.0-1?arch=amd64&distro=trixie';
  const found = bom.components.find(({ purl }) => purl === compiler);
  assert.deepEqual([found?.['scope'], found?.hashes], ['required', [{ alg: 'SHA-256', content: SHA256 }]]);
  assert.equal(bom.components.find(({ name }) => name === 'e2fsprogs')?.['scope'], 'excluded');
  const dependencies = new Map(bom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const agent = 'pkg:npm/%40a/b@1.0.0';
  assert.deepEqual(dependencies.get('guest-image'), [compiler, agent]);
  assert.deepEqual(bom.components.find(({ purl }) => purl === agent)?.hashes, [
    { alg: 'SHA-512', content: '0'.repeat(128) },
  ]);
  assert.ok(dependencies.get(bom.metadata.component['bom-ref'])?.includes('guest-image'));
});
