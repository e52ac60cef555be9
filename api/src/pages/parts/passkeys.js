// Runs passkey forms: passes their options to the browser and submits its answer. Without scripts,
// or without passkeys in the browser, the forms stay hidden. Follows the library in the same file.
(() => {
  const { browserSupportsWebAuthn, startAuthentication, startRegistration } = globalThis.SimpleWebAuthnBrowser;
  if (!browserSupportsWebAuthn()) return;
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.closest('[hidden]')?.removeAttribute('hidden');
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const start = form.dataset.passkey === 'create' ? startRegistration : startAuthentication;
      start({ optionsJSON: JSON.parse(form.dataset.options) }).then(
        (credential) => {
          form.elements.credential.value = JSON.stringify(credential);
          // Without another event.
          form.submit();
        },
        () => {
          form.querySelector('[role=status]').textContent = 'No passkey was used. Try again, or choose another way.';
        },
      );
    });
  }
})();
