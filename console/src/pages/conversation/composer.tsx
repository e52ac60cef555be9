// Writes messages to the agent. Its text is never lost, and never answers an approval.
import { useId, type ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { AGENT_TEXT_CHARACTERS } from '@berth/sdk/limits';
import { interrupt, recover } from '../../queries/agent-sessions.ts';
import { hasActiveTurn } from '../../rules/agents/conversation.ts';
import type { Outbox } from '../../rules/agents/outbox.ts';
import { conversationText as text } from '../../text/conversation.ts';
import { CallButton, useCall } from '../../ui/forms/index.ts';
import { Alert, Button, useSeconds } from '../../ui/kit/index.ts';
import { StartButton } from '../agents/start-button.tsx';
import { useOrgInView } from '../frame/content.tsx';
import { useOutbox } from './use-outbox.ts';
import css from '../agents/agents.module.css';

interface ComposerProps {
  session: api.AgentSession;
  userId: string;
  /** Beside the label. */
  children: ReactNode;
}

export function Composer({ session, userId, children }: ComposerProps) {
  const id = useId();
  const [outbox, dispatch, send] = useOutbox(session.id, userId);
  const { refusalOf } = useOrgInView();
  const call = useCall();
  const { name, note } = outbox;
  const isActive = hasActiveTurn(session);
  const isDraft = name === 'draft';
  const refusal = refusalOf('agent_session.send');
  const blocked = refusal ?? blockedBy(session, outbox.text);
  const { capabilities } = session.communication;
  const noInterrupt = refusal ?? (capabilities.includes('interruption') ? null : text.noInterrupt);
  const trySend = (): void => {
    if (blocked === null && !isActive && isDraft) send();
  };
  const isBusy = isActive || note?.code === 'agent_turn_active';
  return (
    <form
      className={css.composer}
      onSubmit={(event) => {
        event.preventDefault();
        trySend();
      }}
    >
      {note === null ? null : <Sent session={session} note={note} onCheck={send} />}
      <Alert title={text.interruptFailed} error={call.error} />
      <div className={css.buttons}>
        <label htmlFor={id}>{text.message(session.agentLabel)}</label>
        {children}
      </div>
      <textarea
        id={id}
        rows={3}
        dir="auto"
        data-kept
        readOnly={!isDraft}
        value={outbox.text}
        onChange={({ target }) => dispatch({ type: 'edit', text: target.value })}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          trySend();
        }}
      />
      <div className={css.buttons}>
        <Button type="submit" kind="primary" reason={blocked ?? (isActive ? text.why.busy : null)} busy={!isDraft}>
          {text.send}
        </Button>
        {isBusy && isDraft && outbox.text.trim() !== '' ? (
          <Button reason={blocked ?? (isActive ? noInterrupt : null)} onClick={() => dispatch({ type: 'interrupt' })}>
            {text.interruptAndSend}
          </Button>
        ) : null}
        {isActive && isDraft ? (
          <Button
            reason={noInterrupt}
            busy={call.isPending || session.turnState === 'interrupting'}
            onClick={() => call.run(() => interrupt(session.id))}
          >
            {text.interrupt}
          </Button>
        ) : null}
        {name === 'interrupting' ? <Button onClick={() => dispatch({ type: 'stop' })}>{text.stop}</Button> : null}
        <output className={css.hint}>{isDraft ? text.sendHint : text.states[name]}</output>
      </div>
    </form>
  );
}

/** Why nothing can be sent, even without an active turn. */
function blockedBy(session: api.AgentSession, words: string): string | null {
  if (!session.communication.capabilities.includes('messages')) return text.why.closed;
  if (words.length > AGENT_TEXT_CHARACTERS) return text.why.long(words.length, AGENT_TEXT_CHARACTERS);
  return words.trim() === '' ? text.why.empty : null;
}

interface SentProps {
  session: api.AgentSession;
  note: NonNullable<Outbox['note']>;
  onCheck: () => void;
}

/** Why the text is still here, and what to do about it. */
function Sent({ session, note: { code, message }, onCheck }: SentProps) {
  return (
    <Alert title={text.noteTitle(code)}>
      <p>{text.note(code, message)}</p>
      <div className={css.buttons}>
        {code === 'unsure' ? <Button onClick={onCheck}>{text.checkAgain}</Button> : null}
        {code === 'session_retry_upgrade_required' ? (
          <>
            <RecoverButton session={session} />
            <StartButton sandboxId={session.sandboxId} reason={null} />
          </>
        ) : null}
      </div>
    </Alert>
  );
}

export function RecoverButton({ session }: { session: api.AgentSession }) {
  const refusal = useOrgInView().refusalOf('agent_session.send');
  // Recovering a ready session leaves its bridge as it is.
  const isPossible = session.bridgeState !== 'ready' && session.communication.capabilities.includes('recovery');
  return (
    <CallButton
      reason={refusal ?? (isPossible ? null : text.noRecovery)}
      failed={text.recoverFailed}
      run={() => recover(session.id)}
      pending={<Recovering />}
    >
      {text.recover}
    </CallButton>
  );
}

function Recovering() {
  return text.recovering(useSeconds());
}
