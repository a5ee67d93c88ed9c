// A flame graph is drawn when it is first opened: before that its frame has no width.
const look = `<style>
	body { font: 14px system-ui, sans-serif; margin: 8px } body #content { padding: 0 }
	@media (prefers-color-scheme: dark) { body { background: #15191c; color: #e3e5e4 } }
</style>`;
const page = JSON.parse(document.getElementById("flame-page").textContent);
const quote = value => JSON.stringify(value).replaceAll("</", "<\\/");
for (const details of document.querySelectorAll("details[data-graph]")) {
	details.addEventListener("toggle", () => {
		if (!details.open || details.querySelector("iframe"))
			return;
		const graph = JSON.parse(document.getElementById(details.dataset.graph).textContent);
		const frame = document.createElement("iframe");
		frame.title = details.querySelector("summary").textContent;
		frame.srcdoc = look + page.replace("/** @options_json **/", () => quote(graph.options))
			.replace("/** @flamegraph_json **/", () => quote(graph.stacks));
		frame.onload = () => {
			frame.style.height = frame.contentDocument.documentElement.scrollHeight + 4 + "px";
		};
		details.append(frame);
	});
}
