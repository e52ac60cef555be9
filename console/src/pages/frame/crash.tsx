// The page of an address without one, and of a failure.
import { Link, useRouteError } from 'react-router';
import { PATHS } from '../../rules/paths.ts';
import { missingPart } from '../../session/update.ts';
import { en } from '../../text/en.ts';
import { Button, Notice, Page } from '../../ui/kit/index.ts';

/** An error that no page expected, or a part of the console that did not load. */
export function Crash() {
  const error = useRouteError();
  const isMissing = error === missingPart.get();
  return (
    <Notice title={isMissing ? en.update.missingTitle : en.states.crashTitle}>
      <p role="alert">{isMissing ? en.update.missing : en.states.crash}</p>
      <code>{error instanceof Error ? error.message : String(error)}</code>
      <Button onClick={() => location.reload()}>{en.update.reload}</Button>
    </Notice>
  );
}

export function WrongAddress() {
  return (
    <Page title={en.states.wrongTitle}>
      <p>{en.states.wrong}</p>
      <p>
        <Link to={PATHS.home}>{en.states.back}</Link>
      </p>
    </Page>
  );
}
