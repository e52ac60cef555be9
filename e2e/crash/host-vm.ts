// Creates a VM that no sandbox requested, by a direct call to an installation's host daemon.
import { request } from 'node:http';
import { readFile } from 'node:fs/promises';
import type { VmSpec } from '@berth/protocol/host.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import type { InstancePaths } from '@berth/machine/supervisor/instance.ts';

export async function hostVm(paths: InstancePaths, id: string, epoch: number): Promise<void> {
  const token = secretLines(await readFile(paths.hostToken, 'utf8'))[0];
  const body: { epoch: number; spec: VmSpec } = {
    epoch,
    spec: { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'nobody', sshAuthorizedKeys: [] },
  };
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(
      {
        socketPath: paths.hostSocket,
        method: 'PUT',
        path: `/vms/${id}`,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        timeout: 60_000,
      },
      (response) => {
        response.resume();
        response.once('end', () => resolve(response.statusCode));
      },
    );
    sent.once('timeout', () => sent.destroy(new Error('the host daemon did not answer within 60 s')));
    sent.once('error', reject);
    sent.end(JSON.stringify(body));
  });
  if (status !== 200) throw new Error(`the host daemon answered ${status}`);
}
