// Conformance: two VMs of one driver share no identifying property, and their clocks are right.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { exec } from '@berth/protocol/calls/exec.ts';
import { health } from '@berth/protocol/calls/identity.ts';
import { DirectGuestClient } from '../../guest/client.ts';
import type { DriverCapabilities } from '../driver.ts';
import { outputOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

/** Some guests set their clock only to the second. */
const CLOCK_TOLERANCE_MS = 1_500;

/** Commands printing one line each, by which a program could tell VMs apart. */
const SEEN_INSIDE = {
  hostname: 'hostname',
  'machine-id': 'cat /etc/machine-id',
  'ssh host key': 'cat /etc/ssh/ssh_host_ed25519_key.pub',
  'random bytes of the kernel': 'head -c 16 /dev/urandom | od -An -tx1',
  'random UUID of the kernel': 'cat /proc/sys/kernel/random/uuid',
} as const;

export function identityConforms(
  current: () => Subject,
  { spec }: ConformanceOptions,
  capabilities: DriverCapabilities,
): void {
  describe('the identity of a VM', () => {
    let one: SubjectVm;
    let two: SubjectVm;
    before(async () => {
      one = await current().create({ ...spec, hostname: 'first' });
      two = await current().create({ ...spec, hostname: 'second' });
    });
    after(async () => {
      await current().destroy(one);
      await current().destroy(two);
    });

    it('is confirmed by the guest with its size', () => {
      assert.deepEqual([one.readBack.hostname, two.readBack.hostname], ['first', 'second']);
      assert.deepEqual([one.readBack.vcpu, two.readBack.vcpu], [spec.vcpu, spec.vcpu]);
    });

    it('admits only calls with the guest’s own secret', async () => {
      const signal = new AbortController().signal;
      assert.equal((await one.client.call(health, {}, { signal, deadlineMs: 20_000 })).ok, true);
      for (const secret of [null, two.identity.secret, '', 'x'.repeat(43)]) {
        const client = new DirectGuestClient(one.running.guest, secret);
        try {
          await assert.rejects(client.call(health, {}, { signal, deadlineMs: 20_000 }), { status: 401 });
          await assert.rejects(client.call(exec, { body: { command: 'true', timeoutSeconds: 5 } }, { signal }), {
            status: 401,
          });
        } finally {
          client.close();
        }
      }
    });

    it('sets the right time', async () => {
      for (const { client } of [one, two]) {
        const beforeUnixMs = Date.now();
        const guestUnixMs = Number(await outputOf(client, 'date +%s%3N'));
        const afterUnixMs = Date.now();
        assert.ok(guestUnixMs >= beforeUnixMs - CLOCK_TOLERANCE_MS, `${beforeUnixMs - guestUnixMs} ms late`);
        assert.ok(guestUnixMs <= afterUnixMs + CLOCK_TOLERANCE_MS, `${guestUnixMs - afterUnixMs} ms early`);
      }
    });

    if (capabilities.isolates) {
      it('shares nothing with another VM that a program inside could see', async () => {
        const seen = await Promise.all(
          [one, two].map(async ({ client }) => outputOf(client, Object.values(SEEN_INSIDE).join('; '))),
        );
        const [first = [], second = []] = seen.map((text) => text.split('\n'));
        for (const [at, what] of Object.keys(SEEN_INSIDE).entries()) {
          assert.ok(first[at], `${what} is empty`);
          assert.notEqual(first[at], second[at], what);
        }
      });

      it('matches the identity given by the host', async () => {
        assert.equal(await outputOf(one.client, 'hostname'), 'first');
        assert.equal(await outputOf(one.client, 'cat /etc/hostname'), 'first');
        assert.equal(await outputOf(one.client, 'getent hosts first >/dev/null && echo found'), 'found');
        assert.equal(await outputOf(one.client, 'cat /etc/machine-id'), one.identity.machineId);
        const [type, key] = one.identity.sshHostKey.publicKey.split(' ');
        assert.ok((await outputOf(one.client, 'cat /etc/ssh/ssh_host_ed25519_key.pub')).startsWith(`${type} ${key}`));
        assert.equal(
          await outputOf(one.client, 'sudo ssh-keygen -y -f /etc/ssh/ssh_host_ed25519_key | cut -d" " -f2'),
          key,
        );
        assert.equal(
          await outputOf(one.client, 'ls /etc/ssh/ssh_host_*_key | wc -l'),
          '1',
          'no host key of the template is left',
        );
      });

      it('keeps the guest daemon and its secret from the tenant’s user', async () => {
        const { secret } = one.identity;
        // Brackets, so that grep does not find its own command line.
        const pattern = `${secret.slice(0, 8)}[${secret[8]}]${secret.slice(9)}`;
        const found = await outputOf(
          one.client,
          'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | ' +
            `grep -ac '${pattern}'; echo "grep ended with $?"`,
        );
        assert.equal(found, '0\ngrep ended with 1');
      });
    }
  });
}
