// Members of an org and invitations in a real browser.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { makeInvitationRow, makePerson } from '../../../api/test/world/people-rows.ts';
import { addressOf, assertDisabled, HARMLESS, HOSTILE, startConsole, type ConsoleSite } from '../browser.ts';

let site: ConsoleSite;
let members: string;
before(async () => {
  site = await startConsole();
  members = `/orgs/${site.api.orgId}/members`;
});
after(() => site.close());

async function makeMember(role: 'owner' | 'admin' | 'viewer', name: string): Promise<string> {
  const { userId } = await makePerson(site.api.db, { [site.api.orgId]: role });
  await site.api.db.updateTable('user').set({ name }).where('id', '=', userId).execute();
  return userId;
}

const roleOf = async (userId: string): Promise<string | undefined> =>
  (await site.api.db.selectFrom('membership').select('role').where('user_id', '=', userId).executeTakeFirst())?.role;

test('an owner changes a role, and removes a member after a confirmation', async () => {
  const userId = await makeMember('viewer', HOSTILE);
  const { person, page } = await site.open(members);
  await page.getByRole('row', { name: /gnp\.exe.*Viewer/ }).waitFor();
  await page.getByText(HARMLESS).waitFor();
  await page.getByRole('row', { name: /Ada Lovelace \(you\)/ }).waitFor();
  await person.look('Members', 'members');
  await page.getByRole('button', { name: `Change role of ${HARMLESS}` }).click();
  await page.getByRole('dialog').getByLabel('Operator').check();
  await person.look('Members', 'members-role');
  await page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click();
  await page.getByRole('row', { name: /gnp\.exe.*Operator/ }).waitFor();
  assert.equal(await roleOf(userId), 'operator');
  await page.getByRole('button', { name: `Remove ${HARMLESS}` }).click();
  await page.getByRole('alertdialog').waitFor();
  await person.look('Members', 'members-remove');
  await page.getByRole('button', { name: 'Remove member' }).click();
  await page.getByRole('row', { name: /gnp\.exe/ }).waitFor({ state: 'detached' });
  assert.equal(await roleOf(userId), undefined);
});

test('an invitation is sent, listed, and revoked after a confirmation', async () => {
  const { person, page } = await site.open(members);
  await page.getByText('None.').waitFor();
  await page.getByRole('button', { name: 'Invite' }).click();
  await page.getByLabel('Email address').fill('new@example.test');
  await page.getByRole('dialog').getByLabel('Viewer').check();
  await person.look('Members', 'members-invite');
  await page.getByRole('button', { name: 'Send invitation' }).click();
  await page.getByRole('row', { name: /new@example\.test.*Viewer.*Ada Lovelace.*not sent yet/ }).waitFor();
  await person.look('Members', 'members-invited');
  await page.getByRole('button', { name: 'Revoke the invitation of new@example.test' }).click();
  await page.getByRole('button', { name: 'Revoke invitation' }).click();
  await page.getByText('None.').waitFor();
  const row = await site.api.db
    .selectFrom('invitation')
    .select('revoked_at')
    .where('email', '=', 'new@example.test')
    .executeTakeFirstOrThrow();
  assert.notEqual(row.revoked_at, null);
});

test('an admin may not change owners or make some, and learns who may', async () => {
  await makeMember('owner', 'Otto Owner');
  await makeMember('viewer', 'Vic Viewer');
  const { page } = await site.open(members, 'admin');
  await page.getByRole('row', { name: /Otto Owner/ }).waitFor();
  const refusal = /Needs the permission org\.owners\.manage\. The role owner has it/;
  await assertDisabled(page, 'Change role of Otto Owner', refusal);
  await assertDisabled(page, 'Remove Otto Owner', refusal);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Change role of Vic Viewer' }).click();
  const submit = page.getByRole('dialog').getByRole('button', { name: 'Change role' });
  await page
    .getByRole('dialog')
    .getByLabel(/^Owner/)
    .check();
  assert.equal(await submit.getAttribute('aria-disabled'), 'true');
  await page
    .getByRole('dialog')
    .getByLabel(/^Member/)
    .check();
  assert.equal(await submit.getAttribute('aria-disabled'), null);
});

test('a viewer sees members and who may change them, without a refused request, and can leave', async () => {
  await makeInvitationRow(site.api.db, { orgId: site.api.orgId, email: 'hidden@example.test' });
  const { person, page, userId } = await site.open(`/orgs/${site.api.orgId}/sandboxes`, 'viewer');
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  await page.getByRole('link', { name: 'Members' }).click();
  await page.getByRole('row', { name: /\(you\)/ }).waitFor();
  await assertDisabled(page, 'Invite', /Needs the permission org\.members\.manage/);
  await page.keyboard.press('Escape');
  assert.equal(await page.getByText('hidden@example.test').count(), 0);
  await person.look('Members', 'members-viewer');
  assert.deepEqual(refused, []);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('button', { name: 'Leave org' }).click();
  await page.getByText('You are not a member of any org yet').waitFor();
  assert.equal(await roleOf(userId), undefined);
});

test('the only owner cannot leave, and an unknown role is shown by its name', async () => {
  const { person, page, userId } = await site.open('/nothing');
  await page.route('**/v1/orgs/*/members', async (route) => {
    const response = await route.fetch({ url: `${site.url}/v1${members}` });
    const body = (await response.json()) as { members: { userId: string; role: string }[] };
    for (const member of body.members) member.role = member.userId === userId ? 'owner' : 'captain';
    await route.fulfill({ response, json: body });
  });
  await person.open(addressOf(members));
  await page.getByText('captain', { exact: true }).first().waitFor();
  await assertDisabled(page, 'Leave', /The org needs an owner/);
});
