// Many sandboxes from one template, from the pool and started fresh: no two share an identity.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { LONG_RUN } from '../../os/test/long-run.ts';
import { awakeSandbox, destroySandbox, exec } from '../world/client.ts';
import { instanceForTests } from '../world/instance.ts';

const SANDBOXES = LONG_RUN ? 100 : 12;
const AT_ONCE = 4;
/** A line each; the last two use user-space generators that were warm in the template. */
const OWN: Readonly<Record<string, string>> = {
  hostname: 'hostname',
  machineId: 'cat /etc/machine-id',
  sshHostKey: 'cut -d" " -f2 /etc/ssh/ssh_host_ed25519_key.pub',
  kernelRandom: 'cat /proc/sys/kernel/random/uuid',
  pythonRandom: 'python3 -c "import os; print(os.urandom(16).hex())"',
  nodeRandom: 'node -p "crypto.randomUUID()"',
};

const berth = instanceForTests('identity', { BERTH_POOL_MIN: '2', BERTH_POOL_MAX: '4' });

test(`${SANDBOXES} sandboxes have distinct names, keys, secrets and random numbers`, async () => {
  const seen = new Map<string, Map<string, string>>(
    [...Object.keys(OWN), 'guestSecret'].map((name) => [name, new Map()]),
  );
  let fromPool = 0;
  const left = Array.from({ length: SANDBOXES }, (_, index) => index);
  const worker = async (): Promise<void> => {
    while (left.pop() !== undefined) {
      const { id } = await awakeSandbox(berth);
      const { stdout } = await exec(berth, id, Object.values(OWN).join('; '));
      const values = stdout.trim().split('\n');
      assert.equal(values.length, Object.keys(OWN).length, stdout);
      const folder = join(berth.dataFolder, 'host', 'vms', id);
      const secret = createHash('sha256')
        .update(await readFile(join(folder, 'guest-secret')))
        .digest('hex');
      if (
        (JSON.parse(await readFile(join(folder, 'record.json'), 'utf8')) as { machineId: string | null }).machineId !==
        null
      )
        fromPool += 1;
      for (const [index, name] of [...Object.keys(OWN), 'guestSecret'].entries()) {
        const value = [...values, secret][index] ?? '';
        assert.ok(value.length > 3, `${id} has the ${name} '${value}'`);
        assert.equal(seen.get(name)?.get(value), undefined, `${id} has the ${name} of another`);
        seen.get(name)?.set(value, id);
      }
      await destroySandbox(berth, id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  for (const [name, values] of seen) assert.equal(values.size, SANDBOXES, name);
  assert.ok(fromPool > 0 && fromPool < SANDBOXES, `${fromPool} of ${SANDBOXES} came from the pool`);
});
