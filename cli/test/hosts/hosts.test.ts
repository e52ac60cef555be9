// `berth service` against a real service.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from 'kysely';
import { upsertHost } from '@berth/api/store/hosts/hosts.ts';
import { masked, Service } from '../world/service.ts';

const [GOOD, AWAY] = [`hst_${'a'.repeat(24)}`, `hst_${'b'.repeat(24)}`] as const;

let service: Service;
before(async () => {
  service = await Service.start({ durable: false });
  const { db } = service.api;
  await db.deleteFrom('host').execute();
  for (const [id, accelerator] of [
    [GOOD, 'kvm'],
    [AWAY, 'tcg'],
  ] as const) {
    await upsertHost(db, {
      id,
      url: 'unix:/nowhere',
      startId: '1',
      driver: 'qemu',
      accelerator,
      capacity: { vcpu: 16, memoryMib: 65_536, diskGib: 2_048 },
      reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
      pool: { ready: 2, target: 3 },
    });
  }
  await sql`update host set last_seen_at = now() - interval '2 hours' where id = ${AWAY}`.execute(db);
});
after(() => service.close());

test('hosts are listed with free capacity and state, with emulation noted, and as JSON', async () => {
  await service.api.makeSandbox('ready', { host_id: GOOD });
  const [table, json] = await Promise.all([
    service.run(['service', 'hosts']),
    service.run(['service', 'hosts', '--json']),
  ]);
  const [titles, good, away] = masked(table.stdout).split('\n');
  assert.match(titles ?? '', /^ID +STATE +ACCEL +FREE VCPU +FREE MEMORY +FREE DISK +POOL +VMS +ASLEEP +SEEN$/);
  assert.match(
    good ?? '',
    /^hst_a{24} +available +kvm +15 of 16 +63 GiB of 64 GiB +2\.0 TiB of 2\.0 TiB +2 of 3 +1 +0 +0 s ago$/,
  );
  assert.match(away ?? '', /^hst_b{24} +unavailable +tcg +16 of 16 .* 2 h ago$/);
  assert.match(table.stderr, /^emulated \(tcg\): VMs are many times slower than with KVM$/m);
  assert.equal(json.stderr, '');
  assert.deepEqual(JSON.parse(json.stdout), await service.body('/v1/service/hosts'));
});

test('a host is shown with its sandboxes page by page', async () => {
  const sandboxes: string[] = [];
  for (const status of ['ready', 'stopped'] as const)
    sandboxes.unshift((await service.api.makeSandbox(status, { host_id: AWAY })).id);
  const first = await service.run(['service', 'host', AWAY, '--limit', '1']);
  assert.match(first.stdout, /^reserved vcpu +1 of 16 \(6\.2 %\)$/m);
  assert.match(first.stdout, /^accelerator +emulated \(tcg\)/m);
  assert.match(first.stdout, new RegExp(`^${sandboxes[0]} +${service.api.orgId} +stopped`, 'm'));
  const [, cursor = ''] = /--after (\S+)\n$/.exec(first.stderr) ?? [];
  const rest = await service.run(['service', 'host', AWAY, '--after', cursor]);
  assert.match(rest.stdout, new RegExp(`^${sandboxes[1]} `, 'm'));
  assert.equal(rest.stderr, '');
  const json = await service.run(['service', 'host', AWAY, '--json']);
  assert.deepEqual(JSON.parse(json.stdout), await service.body(`/v1/service/hosts/${AWAY}`));
});

test('an unknown host and a key of another org are refused by the service, a wrong id before', async () => {
  const missing = await service.run(['service', 'host', `hst_${'c'.repeat(24)}`]);
  assert.deepEqual([missing.code, missing.stdout], [1, '']);
  assert.match(missing.stderr, /\(host_not_found\)/);
  const { token } = await service.api.makeOrg();
  const other = await service.run(['service', 'hosts'], { env: { BERTH_API_KEY: token } });
  assert.equal(other.stdout, '');
  assert.match(other.stderr, /\(org_access_denied\)/);
  const wrong = await service.run(['service', 'host', '<b>']);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /invalid host id '<b>'.*\n?.*berth service hosts lists them/);
});
