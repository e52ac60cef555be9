// The main pages in a pseudo-language, at the narrowest width: nothing scrolls sideways, and every
// word on a page is a text of the console or data.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { AGENT_LABELS } from '@berth/contract/agents/sessions.ts';
import { insertActivity } from '../../../api/src/store/activity/activity.ts';
import { makeKeyRow } from '../../../api/test/world/people-rows.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { addressOf, HOSTILE, NARROWEST, PICTURES, startConsole, type ConsoleSite } from '../browser.ts';
import { buildPseudo } from './pseudo-build.ts';

let site: ConsoleSite;
let folder: string;
let sandboxId: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-console-pseudo-'));
  await buildPseudo(folder);
  process.env['BERTH_CONSOLE_FOLDER'] = folder;
  site = await startConsole();
  const { api } = site;
  ({ id: sandboxId } = await api.makeSandbox('stopped', { name: 'nightly-build-of-the-whole-platform' }));
  await api.makeSandbox('failed', {
    name: HOSTILE,
    status_reason_code: 'vm_lost',
    status_reason_message: 'QEMU exited: out of memory',
  });
  await makeKeyRow(api.db, { orgId: api.orgId, createdBy: api.userId });
  const actor = { kind: 'system', id: null, userId: null } as const;
  await api.db
    .transaction()
    .execute((trx) =>
      insertActivity(trx, { orgId: api.orgId, sandboxId, actor, kind: 'sandbox_failed', details: { reason: 'x' } }),
    );
});
after(async () => {
  await site.close();
  await rm(folder, { recursive: true });
});

/** Words on the page that are neither in brackets nor marked as data. */
const UNTRANSLATED = `(() => {
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) || element.tagName === 'OPTION';
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    const isData = parentElement.closest('bdi, code, pre, kbd, script, noscript') !== null;
    if (!isData && isShown(parentElement)) texts.push(data);
  }
  for (const name of ['alt', 'aria-label', 'placeholder', 'title'])
    for (const element of document.querySelectorAll('[' + name + ']'))
      if (isShown(element)) texts.push(element.getAttribute(name));
  return texts.map((text) => text.trim()).filter((text) => /\\p{L}{2}/u.test(text) && !/^\\[[^]*\\]$/u.test(text));
})()`;

/** Faults of the page in view: words, and pixels by which it scrolls sideways. */
async function faultsOf(page: Page, data: readonly string[]): Promise<string[]> {
  await page.locator('h1').waitFor();
  await untilTrue('the page is loaded', () =>
    page.evaluate<boolean>(`document.querySelector('main[aria-busy=true], main output span[class*=hidden]') === null`),
  );
  const wide = await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
  const found = await page.evaluate<string[]>(UNTRANSLATED);
  return [...(wide === 0 ? [] : [`${wide} px too wide`]), ...found.filter((text) => !data.includes(text))];
}

test('every page fits in a longer language, and shows no word that is not translated', async () => {
  const { orgId } = site.api;
  const { person, page } = await site.open('/me');
  await page.setViewportSize(NARROWEST);
  const { name } = await site.api.db.selectFrom('org').select('name').where('id', '=', orgId).executeTakeFirstOrThrow();
  // A sentence of the service.
  const usage = '0 machine hours are used in this billing period. There is no cap on them.';
  const data = [
    usage,
    name,
    'Ada Lovelace',
    'First project',
    'Self-hosted',
    'Sold',
    'agent-small',
    ...Object.values(AGENT_LABELS),
  ];
  const ofOrg = ['', '/new', '/activity', '/projects', '/usage', '/subscription', '/members', '/api-keys', '/settings'];
  const ofSandbox = ['', '/terminal', '/agents', '/activity', '/files', '/metrics', '/previews'];
  const paths = [
    ...['/me', '/agent-sessions', '/agent-sessions?needsYou=true', '/service/hosts', '/nothing/here'],
    ...[`/orgs/${orgId}`, `/orgs/${orgId}/start`],
    ...ofOrg.map((part) => `/orgs/${orgId}${part === '' || part === '/new' ? '/sandboxes' : ''}${part}`),
    ...ofSandbox.map((part) => `/sandboxes/${sandboxId}${part}`),
  ];
  const faults: string[] = [];
  const check = async (where: string): Promise<void> => {
    faults.push(...(await faultsOf(page, data)).map((fault) => `${where}: ${fault}`));
    if (PICTURES === null) return;
    await page.screenshot({ path: join(PICTURES, `pseudo-${where.replaceAll(/\W+/g, '-')}.png`), fullPage: true });
  };
  for (const path of paths) {
    await person.open(addressOf(path));
    await check(path);
  }
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox').fill('s');
  await check('palette');
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await check('shortcuts');
  assert.deepEqual(faults, []);
});
