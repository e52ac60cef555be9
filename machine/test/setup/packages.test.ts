import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAtLeast, isTested, readPackages } from '../../src/setup/packages.ts';
import type { RoleName } from '../../src/supervisor/role.ts';

test('versions are compared by their upstream part', () => {
  assert.equal(isAtLeast('1:7.2+dfsg-7+deb12u18', '8.2'), false);
  assert.equal(isAtLeast('1:8.1.3+ds-1', '8.2'), false);
  assert.equal(isAtLeast('1:8.2.0+ds-1~bpo12+1', '8.2'), true);
  assert.equal(isAtLeast('1:10.0.2+ds-2+deb13u1', '8.2'), true);
  assert.equal(isAtLeast('10.0', '8.2'), true);
});

test('Debian 12 and 13 count as tested, others do not', () => {
  const debian = { id: 'debian', codename: 'trixie', prettyName: 'Debian' };
  assert.equal(isTested({ ...debian, versionId: '12' }), true);
  assert.equal(isTested({ ...debian, versionId: '13' }), true);
  assert.equal(isTested({ ...debian, versionId: '11' }), false);
  assert.equal(isTested({ ...debian, id: 'ubuntu', versionId: '13' }), false);
});

test('on a set-up host no required package is missing or too old', async () => {
  const packages = await readPackages();
  assert.ok(packages.length > 5);
  assert.deepEqual(
    packages.filter((state) => state.version === null || state.tooOld),
    [],
  );
});

test('only the host role needs QEMU and its network tools', async () => {
  const names = async (roles: readonly RoleName[]): Promise<string[]> =>
    (await readPackages({ roles })).map((state) => state.name);
  const controlPlane = await names(['control-plane', 'database']);
  for (const name of ['qemu-system-x86', 'qemu-utils', 'nftables', 'iproute2'])
    assert.equal(controlPlane.includes(name), false, name);
  assert.deepEqual(
    await names(['host', 'control-plane', 'database']),
    (await readPackages()).map(({ name }) => name),
  );
  assert.ok(controlPlane.includes('bubblewrap'));
});
