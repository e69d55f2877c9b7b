const form = document.querySelector("form");
const status = document.querySelector("[role=status]");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  status.textContent = "…";
  try {
    const response = await fetch("/api/v1/invitations/accept", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token: location.hash.slice(1), password: form.password.value }),
    });
    const answer = await response.json();
    status.textContent = response.ok
      ? "You are a member now. Log in with your email and this password."
      : answer.error.message;
    if (response.ok) form.remove();
  } catch {
    status.textContent = "No answer. Whether you are a member now is not known: try to log in.";
  }
});
