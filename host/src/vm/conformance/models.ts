// Conformance: a guest calls models through the model gateway at the place that the driver reports,
// also after a sleep and wake and under the next instance of the driver. The key stays on the host.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { pino } from 'pino';
import { ModelGateway } from '../../model-gateway/client.ts';
import { MODEL_LIMITS } from '../../model-gateway/limits.ts';
import { FAKE_MODEL_GATEWAY_UID, MODEL_GATEWAY_UID } from '../../network/slots/slot.ts';
import type { DriverCapabilities } from '../driver.ts';
import { outputOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

const KEY = 'sk-conformance-of-models';
/** Sends requests at the same time; prints their status codes, sorted, and the last body. */
const ASK = `
import sys, threading, urllib.error, urllib.request
url, count, results = sys.argv[1], int(sys.argv[2]), []
def ask():
    request = urllib.request.Request(url, b"{}", {"authorization": "Bearer forged", "x-api-key": "forged"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response: results.append((response.status, response.read()))
    except urllib.error.HTTPError as error: results.append((error.code, error.read()))
threads = [threading.Thread(target=ask) for _ in range(count)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*sorted(status for status, _ in results), results[-1][1].decode())
`;
/** Environment, process list and memory of the sandbox's processes, and its files. */
const SEARCH = `cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -c -a KEY_
  grep -rla KEY_ /code /home /tmp /run /var/lib /etc 2>/dev/null | wc -l`;

export function modelsConform(
  current: () => Subject,
  { spec }: ConformanceOptions,
  { network }: DriverCapabilities,
): void {
  describe('the model gateway of a VM', () => {
    const seen: (string | undefined)[] = [];
    let answer = true;
    const provider = createServer((request, response) => {
      seen.push(request.headers.authorization);
      request.resume();
      if (answer) response.end('from the model');
      else held.push(() => response.end());
    });
    const held: (() => void)[] = [];
    let folder: string;
    let models: ModelGateway;
    let vm: SubjectVm;

    before(async () => {
      provider.listen(0, '127.0.0.1');
      await once(provider, 'listening');
      folder = await mkdtemp(join(tmpdir(), 'berth-models-'));
      models = new ModelGateway({
        ...{ folder: join(folder, 'gateway'), lowPorts: network, ca: null, log: pino({ level: 'silent' }) },
        uid: network ? MODEL_GATEWAY_UID : FAKE_MODEL_GATEWAY_UID,
      });
      vm = await current().create(spec);
      await serve();
    });
    after(async () => {
      provider.close();
      provider.closeAllConnections();
      await models.close();
      await current().destroy(vm);
      await rm(folder, { recursive: true });
    });

    async function serve(): Promise<void> {
      await models.serve(vm.id, vm.running.models.listen);
      const agent = { endpoint: `http://127.0.0.1:${(provider.address() as AddressInfo).port}`, key: KEY };
      await models.setAccess(vm.id, {
        orgId: 'org',
        asOfMs: 1,
        version: '1',
        agents: { agent_one: agent, agent_two: null },
      });
    }
    function ask(path = '/openai/v1/responses', count = 1): Promise<string> {
      return outputOf(vm.client, `python3 - '${vm.running.models.url}${path}' ${count} <<'ASK'\n${ASK}ASK`);
    }

    it('forwards with the key, which the guest does not have, and refuses what is not open', async () => {
      assert.equal(await ask(), '200 from the model');
      assert.match(await ask('/openai/v1/files'), /^404 .*not open to sandboxes/);
      assert.match(await ask('/anthropic/v1/messages'), /^403 .*permission_error/);
      assert.deepEqual(seen.splice(0), [`Bearer ${KEY}`]);
      assert.equal(await outputOf(vm.client, SEARCH.replaceAll('KEY_', KEY.replace('-', '[-]'))), '0\n0');
    });

    it('holds its limit of requests in flight from inside the guest', async () => {
      answer = false;
      const asked = ask('/openai/v1/responses', MODEL_LIMITS.perVm);
      while (held.length < MODEL_LIMITS.perVm) await once(provider, 'request');
      assert.match(await ask(), /^503 .*requests to models in flight/);
      assert.equal(held.length, MODEL_LIMITS.perVm);
      answer = true;
      held.splice(0).forEach((end) => end());
      assert.equal(await asked, Array(MODEL_LIMITS.perVm).fill(200).join(' '));
      seen.length = 0;
    });

    it('serves the guest after a sleep and wake, at the same URL', async () => {
      const { url } = vm.running.models;
      await models.forget(vm.id);
      await current().sleep(vm, spec);
      await current().wake(vm);
      assert.equal(vm.running.models.url, url);
      await serve();
      assert.equal(await ask(), '200 from the model');
    });

    it('is at the same place for the next instance of the driver', async () => {
      await current().replaceDriver();
      const found = await current().driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS);
      assert.deepEqual(found?.models, vm.running.models);
      assert.equal(await ask(), '200 from the model');
    });
  });
}
