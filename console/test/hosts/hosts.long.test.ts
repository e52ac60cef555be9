// Hosts of the installation in a real browser.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { insertMembership } from '../../../api/src/store/people/identity.ts';
import { upsertHost } from '../../../api/src/store/hosts/hosts.ts';
import { addressOf, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';
import { assertPollsOnlyShown } from '../hands.ts';

const HOSTS = '/service/hosts';
const [GOOD, AWAY] = [`hst_${'a'.repeat(24)}`, `hst_${'b'.repeat(24)}`] as const;

let site: ConsoleSite;
before(async () => {
  site = await startConsole();
});
after(() => site.close());
beforeEach(async () => {
  await site.api.db.deleteFrom('sandbox').execute();
  await site.api.db.deleteFrom('host').execute();
});

const addHost = (id: string, accelerator = 'kvm', vcpu = 16): Promise<void> =>
  upsertHost(site.api.db, {
    id,
    url: 'unix:/nowhere',
    startId: '1',
    driver: 'qemu',
    accelerator,
    capacity: { vcpu, memoryMib: 64_000, diskGib: 2_000 },
    reserved: { vcpu: 0, memoryMib: 0, diskGib: 0 },
    pool: { ready: 2, target: 3 },
  });

/** Collects the refused requests of the page. */
function refusalsOf(page: Page): string[] {
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  return refused;
}

test('the hosts show reservations as bars and figures, emulation, and a host that is away', async () => {
  const { person, page } = await site.open('/service');
  await page.getByText('No host has responded yet').waitFor();
  assert.equal(page.url(), addressOf(HOSTS));
  await person.look('Hosts', 'hosts-empty');

  await addHost(GOOD);
  await addHost(AWAY, 'tcg', 2);
  await addHost(HOSTILE);
  await site.api.makeSandbox('ready', { host_id: GOOD, allocated_vcpu: 4, allocated_memory_gb: 8 });
  for (const status of ['ready', 'stopped'] as const) await site.api.makeSandbox(status, { host_id: AWAY });
  await sql`update host set last_seen_at = now() - interval '2 hours' where id = ${AWAY}`.execute(site.api.db);
  // The page polls.
  const good = page.getByRole('row', { name: new RegExp(GOOD) });
  await good.getByText('4 of 16').waitFor();
  await good.getByText('8 GiB of 62.5 GiB').waitFor();
  await good.getByText('19 GiB of 2 TiB').waitFor();
  await good.getByRole('img', { name: '25 % reserved' }).waitFor();
  await good.getByText('2 of 3 ready').waitFor();
  const away = page.getByRole('row', { name: new RegExp(AWAY) });
  await away.getByText('Does not respond').waitFor();
  await away.getByText('2h ago').waitFor();
  await page.getByText('Emulated: VMs run many times slower').waitFor();
  await page.getByText(HARMLESS).waitFor();
  await person.look('Hosts', 'hosts');

  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('link', { name: AWAY }).click();
  await page.getByText('This host does not respond and receives no sandboxes.').waitFor();
  await page.getByRole('row', { name: /vCPUs/ }).getByText('1 of 2').waitFor();
  await page.getByRole('link', { name: 'Service' }).and(page.locator('[aria-current=true]')).waitFor();
});

test("a host lists its sandboxes: those of one's own orgs by link, others by id alone", async () => {
  await addHost(GOOD);
  const other = await site.api.makeOrg();
  const own = await site.api.makeSandbox('ready', { host_id: GOOD, name: 'mine' });
  const foreign = await site.api.makeSandbox('stopped', {
    host_id: GOOD,
    org_id: other.orgId,
    project_id: other.projectId,
    name: 'theirs',
  });
  const { person, page } = await site.open(`${HOSTS}/${GOOD}`);
  const row = page.getByRole('row', { name: new RegExp(foreign.id) });
  await row.getByText(other.orgId).waitFor();
  await row.getByText('Asleep').waitFor();
  assert.equal(await page.getByRole('link', { name: foreign.id }).count(), 0);
  assert.doesNotMatch(await page.content(), /theirs|Other org/);
  await person.look(GOOD, 'host');
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole('link', { name: own.id }).click();
  await page.getByRole('heading', { name: 'mine' }).waitFor();
});

test('a removed host is reported as not found', async () => {
  await addHost(GOOD);
  const { person, page } = await site.open(HOSTS);
  await page.getByRole('link', { name: GOOD }).waitFor();
  await site.api.db.deleteFrom('host').execute();
  await page.getByRole('link', { name: GOOD }).click();
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await person.look(GOOD, 'host-removed');
});

test('a hidden page sends no request until it is visible again', async () => {
  await addHost(GOOD);
  const { page } = await site.open(HOSTS);
  await page.clock.install();
  await page.reload();
  await page.getByRole('row', { name: new RegExp(GOOD) }).waitFor();
  const sent: string[] = [];
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === `/v1${HOSTS}`) sent.push(request.url());
  });
  const turn = (state: 'hidden' | 'visible') =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
       document.dispatchEvent(new Event('visibilitychange'));`,
    );
  await turn('hidden');
  await page.clock.fastForward('00:30');
  // Sent after a request of the page.
  await page.evaluate("fetch('/health')");
  assert.deepEqual(sent, []);
  const answered = page.waitForResponse(`**/v1${HOSTS}`);
  await turn('visible');
  await answered;
});

test('a failure can be tried again; later ones keep the figures and say since when', async () => {
  await addHost(GOOD);
  const { person, page } = await site.open('/nothing');
  const fail = () =>
    page.route(`**/v1${HOSTS}*`, (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'internal_error', message: 'the service failed' } } }),
    );
  await fail();
  await person.open(addressOf(HOSTS));
  await page.getByText('the service failed').waitFor();
  await page.unroute(`**/v1${HOSTS}*`);
  await page.getByRole('button', { name: 'Try again' }).click();
  const row = page.getByRole('row', { name: new RegExp(GOOD) });
  await row.waitFor();
  await fail();
  await page.getByText(/The service does not respond\. This is from/).waitFor();
  await row.waitFor();
});

test('others get no entry in the navigation, and learn who sees hosts without a refused request', async () => {
  for (const role of ['member', null] as const) {
    const { person, page, userId } = await site.open('', role);
    const refused = refusalsOf(page);
    if (role === null) {
      const { orgId } = await site.api.makeOrg();
      await insertMembership(site.api.db, { orgId, userId, role: 'owner' });
      await person.open(addressOf(`/orgs/${orgId}/sandboxes`));
    }
    await page.getByRole('link', { name: 'Billing' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Service' }).count(), 0);
    await person.open(addressOf(HOSTS));
    await page.getByText(/Only owners and admins of the org of this installation/).waitFor();
    if (role !== null) await person.look('Hosts', 'hosts-forbidden');
    assert.deepEqual(refused, []);
  }
});

test('the hosts are polled only while their page is shown', async () => {
  await addHost(GOOD);
  const { page } = await site.open('/me');
  await assertPollsOnlyShown(
    page,
    addressOf(HOSTS),
    (path) => path === '/v1/service/hosts',
    async () => {
      await page.getByRole('link', { name: 'Members' }).click();
      await page.getByRole('heading', { name: 'Members' }).waitFor();
    },
  );
});
