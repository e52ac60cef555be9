import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { cpioArchive, moduleLoadOrder } from '../../src/build/initramfs.ts';

describe('the order in which modules load', () => {
  const dep = [
    'kernel/net/core/failover.ko.xz:',
    'kernel/drivers/net/net_failover.ko.xz: kernel/net/core/failover.ko.xz',
    'kernel/drivers/net/virtio_net.ko.xz: kernel/drivers/net/net_failover.ko.xz kernel/net/core/failover.ko.xz',
    'kernel/drivers/char/hw_random/virtio-rng.ko.xz:',
    '',
  ].join('\n');
  const builtin = 'kernel/fs/ext4/ext4.ko\nkernel/drivers/virtio/virtio_pci.ko\n';

  it('puts each module once, after everything it needs', () => {
    assert.deepEqual(moduleLoadOrder(['virtio_net', 'failover'], dep, builtin), [
      'kernel/net/core/failover.ko.xz',
      'kernel/drivers/net/net_failover.ko.xz',
      'kernel/drivers/net/virtio_net.ko.xz',
    ]);
  });

  it('leaves out modules built into the kernel', () => {
    assert.deepEqual(moduleLoadOrder(['ext4', 'virtio_pci'], dep, builtin), []);
  });

  it('treats dashes and underscores in names alike', () => {
    assert.deepEqual(moduleLoadOrder(['virtio_rng'], dep, builtin), ['kernel/drivers/char/hw_random/virtio-rng.ko.xz']);
  });

  it('refuses by name a module that the kernel lacks', () => {
    assert.throws(() => moduleLoadOrder(['virtio_blk'], dep, builtin), /no module virtio_blk/);
  });
});

describe('the initramfs archive', () => {
  const entries = [
    { path: 'bin', mode: 0o040755, content: Buffer.alloc(0) },
    { path: 'bin/tool', mode: 0o100755, content: Buffer.from('abcde') },
    { path: 'note', mode: 0o100644, content: Buffer.from('1234') },
  ];

  it('is read by cpio with the names, modes, sizes and time that were given', () => {
    const archive = cpioArchive(entries, 1_700_000_000);
    const listed = spawnSync('cpio', ['--list', '--verbose', '--numeric-uid-gid', '--quiet'], {
      input: archive,
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC', LC_ALL: 'C' },
    });
    assert.equal(listed.status, 0, listed.stderr);
    const lines = listed.stdout.trim().split('\n');
    assert.match(lines[0] ?? '', /^drwxr-xr-x +2 0 +0 +0 Nov 14 +2023 bin$/);
    assert.match(lines[1] ?? '', /^-rwxr-xr-x +1 0 +0 +5 Nov 14 +2023 bin\/tool$/);
    const content = spawnSync('cpio', ['--extract', '--to-stdout', '--quiet', 'bin/tool'], {
      input: archive,
      encoding: 'utf8',
    });
    assert.equal(content.stdout, 'abcde');
  });

  it('has the same bytes for the same entries', () => {
    assert.ok(cpioArchive(entries, 7).equals(cpioArchive(entries, 7)));
  });
});
