// Shows the pages to a signed-in person and leads others to the sign-in page, which leads back. A
// session that ends later is covered by a dialog: the page keeps its input.
import { useEffect, useSyncExternalStore, type ReactNode } from 'react';
import { en } from '../text/en.ts';
import { Button, buttonClass, Dialog, Loading, Notice } from '../ui/kit/index.ts';
import { session } from './client.ts';

const RETRY_MS = 2_000;

export function Gate({ children }: { children: ReactNode }) {
  const state = useSyncExternalStore(session.subscribe, () => session.state);
  const leaves = state === 'signed-out' && !session.wasSignedIn;
  useEffect(() => {
    if (!leaves) return;
    const { pathname, search, hash } = location;
    location.replace(`/sign-in?return_to=${encodeURIComponent(pathname + search + hash)}`);
  }, [leaves]);
  useEffect(() => {
    if (state !== 'signed-out') return;
    // The person may have signed in again in another tab.
    const look = (): void => void session.refresh();
    addEventListener('focus', look);
    return () => removeEventListener('focus', look);
  }, [state]);
  useEffect(() => {
    if (state !== 'unreachable') return;
    const retry = setInterval(() => void session.refresh(), RETRY_MS);
    return () => clearInterval(retry);
  }, [state]);

  if (session.wasSignedIn) {
    return (
      <>
        {children}
        {state === 'signed-out' ? <SignedOut /> : null}
      </>
    );
  }
  if (state === 'refused' || state === 'unreachable') {
    return (
      <main>
        <Notice title={state === 'refused' ? en.session.refusedTitle : en.session.unreachableTitle}>
          <p role="alert">{state === 'refused' ? en.session.refused(location.origin) : en.states.unreachable}</p>
          <Button onClick={() => void session.refresh()}>{en.states.retry}</Button>
        </Notice>
      </main>
    );
  }
  return (
    <main>
      <Loading />
    </main>
  );
}

function SignedOut() {
  return (
    <Dialog alert title={en.session.title} description={en.session.keeps} onClose={() => void session.refresh()}>
      <p>
        <a className={buttonClass('primary')} href="/sign-in?return_to=/console" target="_blank" rel="noreferrer">
          {en.session.again}
        </a>
      </p>
    </Dialog>
  );
}
