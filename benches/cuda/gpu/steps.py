"""Steps of a small training in PyTorch: `steps.py STEPS [all|cuda]`, the latter with PyTorch's own profiler. Prints the time of a step."""
import torch, sys, time
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(4096, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(512, 3, 32, 32).pin_memory(); y = torch.randint(0, 10, (512,)).pin_memory()
side = torch.cuda.Stream()
def step(name):
    torch.cuda.nvtx.range_push(name)
    with torch.cuda.stream(side): xb, yb = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.nvtx.range_push("forward"); loss = torch.nn.functional.cross_entropy(net(xb), yb); torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_push("backward"); opt.zero_grad(); loss.backward(); torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_push("optimizer"); opt.step(); torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_pop()
    return loss
for i in range(20): step("warm-up")
torch.cuda.synchronize()
n = int(sys.argv[1])
def measure():
    t = time.perf_counter()
    with torch.cuda.nvtx.range("measured"):
        for i in range(n): loss = step(f"step {i}" if n < 10 else "step")
        torch.cuda.synchronize()
    return (time.perf_counter() - t) / n * 1e3, loss
if len(sys.argv) > 2:
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] if sys.argv[2] == "all" else [ProfilerActivity.CUDA]): ms, loss = measure()
else:
    ms, loss = measure()
print(f"{ms:.3f} ms a step, loss {loss.item():.4f}")
