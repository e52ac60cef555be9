// Kernel secrets of many VMs of one template, read inside, on a private host. Needs root, the image
// and the template (`berth test` makes them).
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { readConfig } from '../../../../src/config.ts';
import { DaemonFixture } from '../../../daemon/daemon-process.ts';
import { slotLeftovers, slotProcesses } from '../../../network/slots/slot-leftovers.ts';
import { LONG_RUN } from '../../../../../os/test/long-run.ts';
import { SMALL, vmIdOf } from '../../lifecycle/lifecycle-fixture.ts';
import { enterPrivateHost } from '../../private-host.ts';

enterPrivateHost();

const VMS = LONG_RUN ? 20 : 8;
const { cacheFolder } = readConfig([], process.env);

/** Prints each secret of the kernel as `name hex`, read from its memory. */
const READ_SECRETS = String.raw`
my %size = (net_secret => 16, ts_secret => 16, ptr_key => 16, syncookie_secret => 32);
open(my $core, '<:raw', '/proc/kcore') or die; sysread($core, my $head, 64);
my ($place, $count) = (unpack('x32 Q', $head), unpack('x56 S', $head));
sysseek($core, $place, 0); sysread($core, my $parts, 56 * $count);
open(my $symbols, '<', '/proc/kallsyms') or die;
while (<$symbols>) {
  my ($hex, undef, $name) = split; $name =~ s/\.\d+$//;
  my $bytes = $size{$name} or next; my $at = hex $hex;
  for my $i (0 .. $count - 1) {
    my ($type, undef, $offset, $from, undef, $length) = unpack('L L Q Q Q Q', substr($parts, 56 * $i, 56));
    next if $type != 1 || $at < $from || $at >= $from + $length;
    sysseek($core, $offset + ($at - $from), 0); sysread($core, my $secret, $bytes);
    print "$name ", unpack('H*', $secret), "\n"; last;
  }
}`;

describe('the kernels of VMs of one template', () => {
  let daemon: DaemonFixture;
  before(async () => {
    daemon = await DaemonFixture.make(['--driver', 'qemu', '--cache-dir', cacheFolder, '--pool-max', '0']);
    assert.equal(await daemon.start(), true);
  });
  after(async () => {
    await daemon.end('SIGTERM');
    const left = [...slotProcesses(), ...slotLeftovers()];
    await daemon.remove();
    assert.deepEqual(left, []);
  });

  async function secretsOf(at: number): Promise<string[]> {
    const id = vmIdOf('abcdefghijklmnopqrstuvwxyz'.charAt(at));
    const made = await daemon.call('PUT', `/vms/${id}`, { epoch: 1, spec: SMALL });
    assert.equal(made.status, 200, JSON.stringify(made.body));
    const command = `sudo perl - <<'END'\n${READ_SECRETS}\nEND`;
    const { status, body } = await daemon.call('POST', `/vms/${id}/exec`, { command, timeoutSeconds: 60 });
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal((await daemon.call('DELETE', `/vms/${id}?epoch=2`)).status, 200);
    return (body as { stdout: string }).stdout.trim().split('\n').sort();
  }

  it(`share none of their secrets among ${VMS}`, async () => {
    const all: string[] = [];
    for (let at = 0; at < VMS; at += 1) {
      const secrets = await secretsOf(at);
      const names = new Set(secrets.map((line) => line.split(' ')[0]));
      for (const name of ['net_secret', 'ptr_key']) assert.ok(names.has(name), name);
      for (const line of secrets) assert.doesNotMatch(line, / 0+$/);

      all.push(...secrets);
    }
    assert.equal(new Set(all).size, all.length, all.sort().join('\n'));
  });
});
