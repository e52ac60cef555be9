// The CLI on a real VM: a sandbox from create to destroy, through `berth sandbox` alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { berth, type Ended } from '../../cli/test/world/berth.ts';
import { exec, getSandbox } from '../world/client.ts';
import { instanceForTests } from '../world/instance.ts';
import { until } from '../../os/test/until.ts';

const service = instanceForTests('cli-sandbox');
async function run(...words: string[]): Promise<Ended> {
  const ended = await berth(['sandbox', ...words], { env: { BERTH_URL: service.url, BERTH_API_KEY: service.token } });
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

test('the CLI creates, shows, sleeps, wakes, resizes and deletes a sandbox', async () => {
  const id = (await run('create', '--name', 'of the cli')).stdout.trim();
  assert.equal((await getSandbox(service, id)).name, 'of the cli');
  assert.equal((await exec(service, id, 'sleep 600 >/dev/null 2>&1 & echo $! > pid; nproc')).stdout, '1\n');

  const { metrics } = JSON.parse((await run('metrics', id, '--json')).stdout) as {
    metrics: { guest: { cpu: { vcpu: number } } };
  };
  assert.equal(metrics.guest.cpu.vcpu, 1);
  assert.match((await run('metrics', id)).stdout, /^memory +\d.* MiB of \d.* [MG]iB \(\d+(?:\.\d)? %\)$/m);

  assert.equal((await run('sleep', id)).stdout, `${id} stopped\n`);
  assert.equal((await run('wake', id)).stdout, `${id} ready\n`);
  assert.equal(
    (await exec(service, id, 'kill -0 $(cat pid) && echo alive')).stdout,
    'alive\n',
    'its processes are there',
  );

  assert.equal((await run('resize', id, '--vcpu', '2')).stdout, `${id} 2 vCPU, 1 GB, 10 GB disk\n`);
  await until('the guest has it', async () => ((await exec(service, id, 'nproc')).stdout === '2\n' ? true : null));
  assert.match((await run('get', id)).stdout, /^last wake +\S+Z \(.+ ago\) from snapshot$/m);

  assert.equal((await run('rm', id)).stdout, `${id} deleted\n`);
  assert.equal((await getSandbox(service, id)).status, 'deleted');
});
