// Conformance: a guest calls models through the model gateway at the place that the driver reports,
// also after a sleep and wake and under the next instance of the driver. The key stays on the host.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import { pino } from 'pino';
import { ModelGateway } from '../../model-gateway/client.ts';
import { MODEL_LIMITS } from '../../model-gateway/limits.ts';
import { FAKE_MODEL_GATEWAY_UID, MODEL_GATEWAY_UID } from '../../network/slots/slot.ts';
import type { DriverCapabilities } from '../driver.ts';
import { outputOf, snapshotFolderOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

const KEY = 'sk-conformance-of-models';
/** Joined inside the guest only. */
const MARKER = ['marker-of-', 'conformance'] as const;
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
/** Sends each text of the list to the address; prints the status code of each first response. */
const SEND = `
import json, socket, sys
host, port, texts = sys.argv[1], int(sys.argv[2]), json.load(sys.stdin)
for text in texts:
    connection = socket.create_connection((host, port), 10)
    connection.sendall(text.encode())
    try: first = connection.recv(4096).split(b" ")
    except ConnectionError: first = []
    connection.close()
    print(first[1].decode() if len(first) > 1 else "closed")
`;
const POST = 'POST /openai/v1/responses HTTP/1.1\r\nHost: x\r\n';
const HIDDEN = 'POST /openai/v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';
const HOSTILE: readonly [string, string][] = [
  [`${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${HIDDEN}`, '400'],
  [`${POST}Content-Length: 0\r\nContent-Length: 90\r\n\r\n${HIDDEN}`, '400'],
  [`${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${HIDDEN}`, '400'],
  [`${POST}Accept: a\rb\r\nContent-Length: 0\r\n\r\n`, '400'],
  [`${POST}Accept: ${'x'.repeat(40_000)}\r\nContent-Length: 0\r\n\r\n`, '431'],
  [`${POST}Content-Length: 33554433\r\n\r\n`, '413'],
  [POST.replace('/openai/v1/responses', '/openai/v1/files') + '\r\n', '404'],
  [POST.replace('/openai/', '/openai/../openai/') + '\r\n', '404'],
  [POST.replace('/openai/', 'http://127.0.0.1/openai/') + '\r\n', '404'],
  [POST.replace('POST', 'DELETE') + '\r\n', '405'],
  ['CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n', 'closed'],
];
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

    it('forwards nothing of malformed requests and requests off the list, from inside the guest', async () => {
      const { hostname, port } = new URL(vm.running.models.url);
      const send = `python3 -c '${SEND.replaceAll("'", '')}' ${hostname} ${port}`;
      const texts = JSON.stringify(HOSTILE.map(([text]) => text));
      const found = await outputOf(vm.client, `${send} <<'TEXTS'\n${texts}\nTEXTS`);
      assert.deepEqual(
        found.split('\n'),
        HOSTILE.map(([, status]) => status),
      );
      assert.deepEqual(seen, []);
      assert.equal(await ask(), '200 from the model');
      seen.length = 0;
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

    it('leaves the key in no process, disk or snapshot, and serves the guest after a wake', async () => {
      const { url } = vm.running.models;
      answer = false;
      const asked = ask();
      while (held.length === 0) await once(provider, 'request');
      await outputOf(vm.client, `printf %s%s '${MARKER[0]}' '${MARKER[1]}' | tee /dev/shm/marker ~/marker; sync`);
      const files = dirname(vm.folder);
      assert.deepEqual(filesWith(KEY, '/proc/[0-9]*/cmdline', '/proc/[0-9]*/environ', files), []);
      answer = true;
      held.splice(0).forEach((end) => end());
      assert.equal(await asked, '200');
      seen.length = 0;
      await models.forget(vm.id);
      await current().sleep(vm, spec);
      assert.deepEqual(filesWith(KEY, files), []);
      // The search finds what a guest has in memory and on its disk.
      if (network) assert.ok(filesWith(MARKER.join(''), vm.folder, snapshotFolderOf(vm)).length >= 2);
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

/** Files that contain the text; its search shows it in no command line. */
function filesWith(text: string, ...paths: readonly string[]): string[] {
  const search = spawnSync('sh', ['-c', `grep -rlaF --devices=skip -f - ${paths.join(' ')}`], { input: text });
  return String(search.stdout).split('\n').filter(Boolean);
}
