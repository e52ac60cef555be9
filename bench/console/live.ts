// Live updates: time from a change in the database until an open list shows it, and requests of a
// browser whose tabs are idle.
import type { InstalledConsole } from '../../console/test/installed/installation.ts';
import { inPage } from './in-page.ts';
import { figureOf, type Figure } from '../world/statistics.ts';

const TABS = 10;
const CHANGE_MS = 1_000;
const SETTLE_MS = 30_000;
const IDLE_MS = 120_000;
const HIDE = `Object.defineProperty(document, 'visibilityState', { value: 'hidden' });
  Object.defineProperty(document, 'hidden', { value: true });
  document.dispatchEvent(new Event('visibilitychange'));
  window.dispatchEvent(new Event('visibilitychange'))`;

/** Sleeps and wakes a sandbox whose row is on the screen. */
export async function measureStatus({ berth, page, person }: InstalledConsole, changes: number): Promise<Figure> {
  const { id } = await berth.create({ projectId: await berth.makeProject({ name: 'status' }), name: 'watched' });
  await berth.until(id, ({ status }) => status === 'ready');
  await person.open(`${berth.url}/console/orgs/${berth.orgId}/sandboxes`);
  const row = page.getByRole('row', { name: /watched/ });
  await row.getByText('Ready', { exact: true }).waitFor();
  const took: number[] = [];
  for (let change = 0; change < changes; change += 1) {
    const [verb, status, word] = change % 2 === 0 ? ['sleep', 'stopped', 'Asleep'] : ['wake', 'ready', 'Ready'];
    const seen = inPage<number>(
      page,
      `[...document.querySelectorAll('tbody tr')].some(({ innerText }) =>
        innerText.includes('watched') && innerText.includes('${word}')) && Date.now()`,
    );
    await berth.call('POST', `/v1/sandboxes/${id}/${verb}`);
    const shownAt = await seen;
    const { statusChangedAt } = await berth.until(id, (sandbox) => sandbox.status === status);
    took.push(shownAt - Date.parse(statusChangedAt));
    // A busier org is shown in steps of seconds.
    await page.waitForTimeout(CHANGE_MS);
  }
  return figureOf(took);
}

/** Requests to the API in a minute, of a browser with ten tabs. */
export async function measureIdle({ berth, page }: InstalledConsole): Promise<number> {
  const context = page.context();
  let requests = 0;
  context.on('request', (request) => {
    if (new URL(request.url()).pathname.startsWith('/v1/')) requests += 1;
  });
  const tabs = [page];
  await page.goto(`${berth.url}/console/orgs/${berth.orgId}/sandboxes`);
  while (tabs.length < TABS) {
    const other = await context.newPage();
    await other.goto(page.url());
    tabs.push(other);
  }
  for (const tab of tabs) {
    await tab.getByRole('row', { name: /watched/ }).waitFor();
    // The driver of the browser shows all tabs; in a window one is in front.
    if (tab !== page) await tab.evaluate(HIDE);
  }
  await page.waitForTimeout(SETTLE_MS);
  requests = 0;
  await page.waitForTimeout(IDLE_MS);
  return requests / (IDLE_MS / 60_000);
}
