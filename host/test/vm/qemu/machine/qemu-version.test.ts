import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQemuVersion } from '../../../../src/vm/qemu/machine/qemu-version.ts';

const COPYRIGHT = '\nCopyright (c) 2003-2025 Fabrice Bellard and the QEMU Project developers\n';

test('the version includes the distribution’s revision', () => {
  const version = parseQemuVersion(`QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)${COPYRIGHT}`);
  assert.deepEqual(version, { text: '10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)', runWithUser: true });
});

for (const [text, runWithUser] of [
  ['8.2.0', false],
  ['9.0.4', false],
  ['9.1.0', true],
  ['11.0.0-rc1', true],
] as const) {
  test(`QEMU ${text} ${runWithUser ? 'takes its user from -run-with' : 'takes its user from -runas'}`, () => {
    assert.equal(parseQemuVersion(`QEMU emulator version ${text}${COPYRIGHT}`).runWithUser, runWithUser);
  });
}

test('a QEMU that can map a template only read-write is refused', () => {
  assert.throws(
    () => parseQemuVersion(`QEMU emulator version 7.2.15 (Debian 1:7.2+dfsg-7)${COPYRIGHT}`),
    /8\.2 or newer is needed/,
  );
});

test('a program that is not QEMU is refused', () => {
  assert.throws(() => parseQemuVersion('qemu: command not found'), /unknown version/);
});
