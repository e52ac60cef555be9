// Growth of the page's heap over many navigations and terminals, after a collection of garbage.
import type { CDPSession, Page } from 'playwright-core';
import type { InstalledConsole } from '../../console/test/installed/installation.ts';

const NAVIGATIONS = 200;
const TERMINALS = 50;
const PAGES = ['Activity', 'Usage', 'Projects', 'Sandboxes'] as const;

/** Megabytes more than after a first visit of each page. */
export async function measureHeap({ berth, page }: InstalledConsole): Promise<number> {
  await page.goto(`${berth.url}/console/orgs/${berth.orgId}/sandboxes`);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable');
  const visit = async (navigations: number, terminals: number): Promise<number> => {
    for (let done = 0; done < navigations; done += 1) await navigate(page, PAGES[done % PAGES.length] as string);
    for (let done = 0; done < terminals; done += 1) await openTerminal(page);
    return await heapOf(devtools);
  };
  const before = await visit(2 * PAGES.length, 2);
  const after = await visit(NAVIGATIONS, TERMINALS);
  return (after - before) / 1_000_000;
}

async function navigate(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
}

async function openTerminal(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'watched' }).click();
  await page.getByRole('navigation', { name: 'Sandbox' }).getByRole('link', { name: 'Terminal', exact: true }).click();
  await page.getByText('Connected', { exact: true }).waitFor();
  await navigate(page, 'Sandboxes');
}

async function heapOf(devtools: CDPSession): Promise<number> {
  await devtools.send('HeapProfiler.collectGarbage');
  const { metrics } = await devtools.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? NaN;
}
