// Banners above every page: the service does not respond, or was updated.
import { useQuery } from '@tanstack/react-query';
import { useState, useSyncExternalStore } from 'react';
import { serviceQuery } from '../../queries/service.ts';
import { connection } from '../../session/connection.ts';
import { holdsInput } from '../../session/input.ts';
import { missingPart } from '../../session/update.ts';
import { isNewer } from '../../session/version.ts';
import { en } from '../../text/en.ts';
import { Button } from '../../ui/kit/index.ts';
import css from './frame.module.css';

/** Version of this build. */
declare const BERTH_VERSION: string;

/** Read to screen readers when they appear. */
export function Banners() {
  return (
    <output>
      <Stale />
      <Updated />
    </output>
  );
}

/** Shown while the service does not respond; the data stays. */
function Stale() {
  const since = useSyncExternalStore(connection.staleSince.subscribe, connection.staleSince.get);
  if (since === null) return null;
  return <span className={css.banner}>{en.states.stale(en.time.absolute(since))}</span>;
}

/** Offers a reload after an update of the service. Asks again if the page holds input. */
function Updated() {
  const { data: service } = useQuery(serviceQuery);
  const [asks, setAsks] = useState(false);
  const missing = useSyncExternalStore(missingPart.subscribe, missingPart.get);
  const newer = service !== undefined && isNewer(service.version, BERTH_VERSION);
  if (!newer && missing === null) return null;
  return (
    <span className={css.banner}>
      {asks ? en.update.loses : newer ? en.update.newer(service.version) : en.update.missing}{' '}
      <Button onClick={() => (asks || !holdsInput() ? location.reload() : setAsks(true))}>
        {asks ? en.update.anyway : en.update.reload}
      </Button>
      {asks ? <Button onClick={() => setAsks(false)}>{en.states.cancel}</Button> : null}
    </span>
  );
}
