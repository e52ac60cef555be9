import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Manifest, ManifestPackage } from '../../src/build/manifest.ts';
import { debFileName, formatManifest, manifestDigest, packagesFor, parseManifest } from '../../src/build/manifest.ts';

const HASH = 'ab'.repeat(32);

function packageNamed(name: string, changes: Partial<ManifestPackage> = {}): ManifestPackage {
  return {
    name,
    version: '1:2.0-1+b1',
    architecture: 'amd64',
    archive: 'debian',
    poolPath: `pool/main/x/x/${name}_2.0-1+b1_amd64.deb`,
    sizeBytes: 10,
    sha256: HASH,
    uses: ['root'],
    ...changes,
  };
}

function manifestOf(...packages: ManifestPackage[]): Manifest {
  const program = { version: '1', sha256: HASH };
  const agents = [{ id: 'agent_one', package: '@a/b@1', version: '1', integrity: 'sha512-x' }];
  return {
    ...{ format: 1, suite: 'trixie', architecture: 'amd64', recipeHash: HASH, node: program, npm: program },
    agents,
    packages,
  };
}

describe('a manifest', () => {
  it('is read back as written', () => {
    const value = manifestOf(packageNamed('aa'), packageNamed('bb', { uses: ['essential', 'root'] }));
    assert.deepEqual(parseManifest(formatManifest(value), 'test'), value);
  });

  it('has one written form for any order of its packages and their uses', () => {
    const one = manifestOf(packageNamed('aa'), packageNamed('bb', { uses: ['root', 'essential'] }));
    const other = manifestOf(packageNamed('bb', { uses: ['essential', 'root'] }), packageNamed('aa'));
    assert.equal(formatManifest(one), formatManifest(other));
    assert.equal(manifestDigest(one), manifestDigest(other));
    assert.notEqual(manifestDigest(one), manifestDigest(manifestOf(packageNamed('aa'))));
  });

  it('gives packages by use, each once and in order', () => {
    const value = manifestOf(
      packageNamed('cc', { uses: ['tools'] }),
      packageNamed('bb'),
      packageNamed('aa', { uses: ['essential', 'root'] }),
    );
    assert.deepEqual(
      packagesFor(value, 'essential', 'root').map((each) => each.name),
      ['aa', 'bb'],
    );
  });

  it('names a package file as apt does', () => {
    assert.equal(debFileName(packageNamed('aa')), 'aa_1%3a2.0-1+b1_amd64.deb');
  });

  it('is refused with its source and the position of the error', () => {
    const text = formatManifest(manifestOf(packageNamed('aa')));
    assert.throws(() => parseManifest('{', 'the file'), /the file is not JSON/);
    assert.throws(
      () => parseManifest(text.replace(HASH, 'short'), 'the file'),
      /the file is not a manifest[^]*recipeHash/,
    );
    assert.throws(() => parseManifest(text.replace('"pool/', '"../pool/'), 'the file'), /packages\[0\]\.poolPath/);
    assert.throws(() => parseManifest(text.replace('"sizeBytes"', '"size"'), 'the file'), /size/);
  });
});
