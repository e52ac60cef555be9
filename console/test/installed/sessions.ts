// Agent sessions of an installation with the scripted agent, and the page of a conversation.
import type { Page, Route } from 'playwright-core';
import type { FakeInstallation } from '../../../api/test/fake-installation.ts';
import type { Person } from '../../../api/test/pages/browser.ts';
import { until } from '../../../os/test/until.ts';

export interface Session {
  id: string;
  sandboxId: string;
}

export async function makeSandbox(berth: FakeInstallation, projectId: string, name: string): Promise<string> {
  const { id } = await berth.create({ projectId, name });
  await berth.until(id, ({ status }) => status === 'ready');
  return id;
}

/** A session in a new sandbox. */
export async function makeSession(berth: FakeInstallation, projectId: string, name: string): Promise<Session> {
  const sandboxId = await makeSandbox(berth, projectId, name);
  const { id } = await berth.call('POST', `/v1/sandboxes/${sandboxId}/agent-sessions`);
  return { id: String(id), sandboxId };
}

/** Number of turns that the agent has executed. */
export async function effects(berth: FakeInstallation, { sandboxId }: Session): Promise<number> {
  return Number((await berth.exec(sandboxId, 'cat ~/agent-effects 2>/dev/null | wc -l')).stdout);
}

export async function write(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message to Codex').fill(text);
  await page.getByRole('button', { name: 'Send', exact: true }).click();
}

/** Resolves when the turn has ended and the message's field is empty. */
export async function settled(page: Page): Promise<void> {
  await page.getByText('Ready for a message', { exact: true }).waitFor();
  const message = page.getByLabel('Message to Codex');
  await until('the message has left', async () => ((await message.inputValue()) === '' ? true : null));
}

/** Lets the request reach the service, and loses its response. */
export async function loseResponse(route: Route): Promise<void> {
  await route.fetch();
  await route.abort('connectionreset');
}

/** Removes the complaints of Chromium about lost responses. Returns the others. */
export function otherComplaints({ complaints }: Person): string[] {
  return complaints.splice(0).filter((one) => !/ERR_CONNECTION_RESET|ERR_ABORTED/.test(one));
}
